def parse(text, time, padding): return ()
def check(sink): return None
