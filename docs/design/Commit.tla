------------------------------ MODULE Commit ------------------------------
(***************************************************************************)
(* Tiles and commit, as commit.md says in words and s3lake/index/commit/ does in  *)
(* Python. One action is one request to the store; between any two of them  *)
(* an actor may pause for as long as it likes, or die. The labels of rules  *)
(* (R1 ...) and of what goes wrong without them (C1 ...) are commit.md's.   *)
(*                                                                          *)
(* One topic-partition with the offsets 0 .. Records-1, of which those from *)
(* `edge` on belong to hour 1. Every file holds one record, so a file is an *)
(* offset and what stands after its name: 0, or the commit's id (R2).       *)
(*                                                                          *)
(* Left out, and tried by s3lake_tests/index/commit/world.py: what Kafka expires  *)
(* and compacts, topic-partitions that come later, topics created again,    *)
(* objects of other programs, exactly_once: false, gaps between hours.      *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Actors,       \* runs, backfills, sensors, `clean`: all are equal
    Records,      \* how many offsets there are
    Edges,        \* where hour 1 may begin
    Hours,        \* {0} or {0, 1}
    MaxCommit,    \* how many commits may be tried
    MaxRev,       \* how often a tile may change
    Doing,        \* what else happens: "die", "rewrite", "clean", "table"
    Without       \* the rules that are left out, to see what they are for

Rule(name) == name \notin Without

Offsets == 0 .. Records - 1
Ids     == 1 .. MaxCommit
Open    == Records + 1
Nobody  == 0

VARIABLES
    edge,         \* the first offset of hour 1, as Kafka says it
    objects,      \* what is visible: the commit that an object says it is of (R1)
    uploads,      \* staged and not visible: pairs of commit and offset
    flights,      \* completed, and not yet visible
    manifests,    \* what each commit consists of
    tiles,
    topic,        \* topic.json: the hours that have a tile, and the tile made last
    actors,
    misled,       \* somebody aborted uploads of a commit that was pending
    table         \* the commits that a table outside the index lists, and how often it has changed

vars == <<edge, objects, uploads, flights, manifests, tiles, topic, actors, misled, table>>

NoTile     == [rev |-> 0, start |-> 0, committed |-> 0, end |-> Open, commits |-> {}, pending |-> Nobody,
               garbage |-> {}, burnt |-> 0]
NoManifest == [hour |-> 0, low |-> 0, high |-> 0, named |-> FALSE, replaces |-> {}]
Idle       == [at |-> "idle", hour |-> 0, seen |-> NoTile, commit |-> Nobody, left |-> {}, mine |-> FALSE]

Exists(h)   == tiles[h].rev > 0
Files(c)    == manifests[c].low .. manifests[c].high - 1
Name(c, o)  == <<o, IF manifests[c].named THEN c ELSE 0>>
Least(s)    == CHOOSE x \in s : \A y \in s : x <= y
Max(x, y)   == IF x >= y THEN x ELSE y
Min(x, y)   == IF x <= y THEN x ELSE y
Free        == {c \in Ids : manifests[c] = NoManifest}
IsOf(o, c)  == IF Rule("identity") THEN objects[Name(c, o)] = c ELSE objects[Name(c, o)] # Nobody

(* An If-Match of what was seen. Without `rev` a document that returns to earlier bytes passes for them (C6). *)
Same(h, seen) == IF Rule("rev") THEN tiles[h] = seen ELSE [tiles[h] EXCEPT !.rev = 0] = [seen EXCEPT !.rev = 0]
Swap(h, tile) == tiles' = [tiles EXCEPT ![h] = [tile EXCEPT !.rev = tiles[h].rev + 1]]
Go(a, next)   == actors' = [actors EXCEPT ![a] = next]
GoTo(a, at)   == Go(a, [actors[a] EXCEPT !.at = at])
Rest(a)       == Go(a, Idle)

Init ==
    /\ edge \in Edges
    /\ objects = [name \in Offsets \X (0 .. MaxCommit) |-> Nobody]
    /\ uploads = {} /\ flights = {}
    /\ manifests = [c \in Ids |-> NoManifest]
    /\ tiles = [h \in Hours |-> NoTile]
    /\ topic = [rev |-> 1, hours |-> {}, hour |-> 0, new |-> NoTile]
    /\ actors = [a \in Actors |-> Idle]
    /\ misled = FALSE
    /\ table = [h \in Hours |-> [rev |-> 0, commits |-> {}]]

---------------------------------------------------------------------------
(* open: only topic.json adds tiles (R5). Its actors read their neighbours first, and close the earlier one. *)

Announced == topic.hours # {} /\ ~Exists(topic.hour)
Known     == IF Rule("topic") THEN topic.hours ELSE {h \in Hours : Exists(h)}

Made(h) ==
    LET before == h - 1 \in Known
        after  == h + 1 \in Known
        from   == IF before THEN tiles[h - 1].end ELSE IF h = 0 THEN 0 ELSE edge
        start  == IF after THEN Min(from, tiles[h + 1].start) ELSE from
    IN  [NoTile EXCEPT
            !.rev = 1, !.start = start, !.committed = start,
            !.end = IF after THEN tiles[h + 1].start ELSE Open,
            !.burnt = IF before /\ Rule("inherit") /\ tiles[h - 1].burnt > start THEN tiles[h - 1].burnt ELSE 0]

ReadTopic(a) == \E h \in Hours :
    /\ actors[a].at = "idle" /\ h \notin Known
    /\ Rule("topic") => ~Announced
    /\ h - 1 \in Known => tiles[h - 1].end # Open
    /\ Go(a, [Idle EXCEPT !.at = "announce", !.hour = h, !.seen = Made(h), !.commit = topic.rev])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Announce(a) ==
    /\ actors[a].at = "announce"
    /\ IF ~Rule("topic") THEN GoTo(a, "create") /\ UNCHANGED topic
       ELSE IF topic.rev = actors[a].commit
       THEN /\ topic' = [rev |-> topic.rev + 1, hours |-> topic.hours \union {actors[a].hour},
                         hour |-> actors[a].hour, new |-> actors[a].seen]
            /\ GoTo(a, "create")
       ELSE Rest(a) /\ UNCHANGED topic
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, misled, table>>

Create(a) ==
    /\ actors[a].at = "create"
    /\ tiles' = IF Exists(actors[a].hour) THEN tiles ELSE [tiles EXCEPT ![actors[a].hour] = actors[a].seen]
    /\ Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

FinishCreation(a) ==
    /\ actors[a].at = "idle" /\ Rule("topic") /\ Announced
    /\ Go(a, [Idle EXCEPT !.at = "create", !.hour = topic.hour, !.seen = topic.new])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

(* A tile that was announced and not created may be created closed, in one request: an hour without a record. *)
CreateClosed(a) ==
    /\ actors[a].at = "idle" /\ Rule("topic") /\ Announced /\ topic.new.end = Open
    /\ LET end == IF topic.hour = 0 THEN edge ELSE Records
       IN  Go(a, [Idle EXCEPT !.at = "create", !.hour = topic.hour,
                  !.seen = [topic.new EXCEPT !.rev = topic.new.rev + 1, !.end = Max(topic.new.committed, end)]])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

---------------------------------------------------------------------------
(* close: at any time, because clocks never decide what is right. *)

Close(a) == \E h \in Hours :
    /\ actors[a].at = "idle" /\ Exists(h) /\ tiles[h].end = Open
    /\ Rule("settle") => tiles[h].pending = Nobody
    /\ Go(a, [Idle EXCEPT !.at = "close", !.hour = h, !.seen = tiles[h]])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Closed(a) ==
    /\ actors[a].at = "close"
    /\ LET h == actors[a].hour
           seen == actors[a].seen
           end  == IF h = 0 THEN edge ELSE Records
       IN  IF Same(h, seen) THEN Swap(h, [seen EXCEPT !.end = Max(seen.committed, end)]) ELSE UNCHANGED tiles
    /\ Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

---------------------------------------------------------------------------
(* write: the look that is the fence, staging and the manifest (all under names of its own) are one action. *)

Stage(a, h, c, manifest) ==
    /\ manifests' = [manifests EXCEPT ![c] = manifest]
    /\ uploads' = uploads \union {<<c, o>> : o \in manifest.low .. manifest.high - 1}
    /\ Go(a, [Idle EXCEPT !.at = "switch", !.hour = h, !.seen = tiles[h], !.commit = c])
    /\ UNCHANGED <<edge, objects, flights, tiles, topic, misled, table>>

Tidy(h) == Exists(h) /\ tiles[h].pending = Nobody /\ tiles[h].garbage = {}

Begin(a) == \E h \in Hours :
    /\ actors[a].at = "idle" /\ Tidy(h) /\ Free # {}
    /\ \E high \in tiles[h].committed + 1 .. Min(tiles[h].end, Records) :
        Stage(a, h, Least(Free),
              [hour |-> h, low |-> tiles[h].committed, high |-> high, replaces |-> {},
               named |-> Rule("burnt") /\ tiles[h].committed < tiles[h].burnt])

Rewrite(a) == \E h \in Hours :
    /\ "rewrite" \in Doing
    /\ actors[a].at = "idle" /\ Tidy(h) /\ Free # {}
    /\ tiles[h].commits # {} /\ tiles[h].committed = tiles[h].end
    /\ Stage(a, h, Least(Free),
             [hour |-> h, low |-> tiles[h].start, high |-> tiles[h].end, replaces |-> tiles[h].commits,
              named |-> Rule("suffix")])

(* Step 4. Its answer may be lost: then it is sent again, and refused by what it has written itself (C5). *)
Switch(a) ==
    /\ actors[a].at = "switch"
    /\ LET h == actors[a].hour IN
       IF Same(h, actors[a].seen)
       THEN /\ Swap(h, [actors[a].seen EXCEPT !.pending = actors[a].commit])
            /\ \E answer \in {"settle", "refused"} : GoTo(a, answer)
       ELSE GoTo(a, "refused") /\ UNCHANGED tiles
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

Refused(a) ==
    /\ actors[a].at = "refused"
    /\ LET tile == tiles[actors[a].hour]
           c    == actors[a].commit
       IN  IF Rule("readback") /\ (tile.pending = c \/ c \in tile.commits)
           THEN GoTo(a, "settle") /\ UNCHANGED <<uploads, misled>>
           ELSE /\ uploads' = {u \in uploads : u[1] # c}
                /\ misled' = (misled \/ tile.pending = c)
                /\ Rest(a)
    /\ UNCHANGED <<edge, objects, flights, manifests, tiles, topic, table>>

---------------------------------------------------------------------------
(* settle: by its writer, or by anybody who comes by. *)

Settle(a) == \E h \in Hours :
    /\ \/ actors[a].at = "idle" /\ tiles[h].pending # Nobody
       \/ actors[a].at = "settle" /\ h = actors[a].hour
    /\ IF tiles[h].pending = Nobody THEN Rest(a)
       ELSE Go(a, [at |-> "complete", hour |-> h, seen |-> tiles[h], commit |-> tiles[h].pending,
                   left |-> Files(tiles[h].pending), mine |-> FALSE])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

(* Complete with If-None-Match. The store may take its time: the upload is gone, the object not there (C9). *)
Complete(a) ==
    /\ actors[a].at = "complete"
    /\ LET c == actors[a].commit
           o == Least(actors[a].left)
       IN  IF actors[a].left = {} THEN GoTo(a, "forward") /\ UNCHANGED <<objects, uploads, flights>>
           ELSE IF <<c, o>> \notin uploads \/ objects[Name(c, o)] # Nobody
           THEN GoTo(a, "head") /\ UNCHANGED <<objects, uploads, flights>>
           ELSE /\ uploads' = uploads \ {<<c, o>>}
                /\ \/ /\ objects' = [objects EXCEPT ![Name(c, o)] = c]
                      /\ Go(a, [actors[a] EXCEPT !.left = @ \ {o}, !.mine = TRUE])
                      /\ UNCHANGED flights
                   \/ /\ flights' = flights \union {<<c, o>>}
                      /\ Go(a, [actors[a] EXCEPT !.at = "waits", !.mine = TRUE])
                      /\ UNCHANGED objects
    /\ UNCHANGED <<edge, manifests, tiles, topic, misled, table>>

Arrive == \E f \in flights :
    /\ flights' = flights \ {f}
    /\ objects' = [objects EXCEPT ![Name(f[1], f[2])] = IF @ = Nobody THEN f[1] ELSE @]
    /\ UNCHANGED <<edge, uploads, manifests, tiles, topic, actors, misled, table>>

Answered(a) ==
    /\ actors[a].at = "waits" /\ <<actors[a].commit, Least(actors[a].left)>> \notin flights
    /\ GoTo(a, "head")
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Head(a) ==
    /\ actors[a].at = "head"
    /\ IF IsOf(Least(actors[a].left), actors[a].commit)
       THEN Go(a, [actors[a] EXCEPT !.at = "complete", !.left = @ \ {Least(@)}])
       ELSE GoTo(a, "back")
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Settled(a) ==
    /\ actors[a].at \in {"forward", "back"}
    /\ LET h    == actors[a].hour
           seen == actors[a].seen
           c    == actors[a].commit
           done == [seen EXCEPT !.pending = Nobody]
           gone == manifests[c].replaces
           forward == [done EXCEPT !.committed = Max(@, manifests[c].high),
                                   !.commits = (@ \ gone) \union {c}, !.garbage = @ \union gone]
           back == [done EXCEPT !.garbage = @ \union {c}, !.burnt = Max(@, manifests[c].high)]
       IN  IF Same(h, seen)
           THEN Swap(h, IF actors[a].at = "forward" THEN forward ELSE back) /\ Rest(a)
           ELSE GoTo(a, "lost") /\ UNCHANGED tiles
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

(* Somebody else settled it, and may have looked for its objects before what I completed was there (C9): whoever is *)
(* about to clear that garbage has to look again, so the tile changes even where it lists the commit already.       *)
Lost(a) ==
    /\ actors[a].at = "lost"
    /\ LET tile == tiles[actors[a].hour]
           c    == actors[a].commit
       IN  IF tile.pending = c THEN GoTo(a, "settle") /\ UNCHANGED tiles
           ELSE /\ IF /\ actors[a].mine /\ c \notin tile.commits /\ Rule("again")
                      /\ Rule("though listed") \/ c \notin tile.garbage
                   THEN Swap(actors[a].hour, [tile EXCEPT !.garbage = @ \union {c}])
                   ELSE UNCHANGED tiles
                /\ Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

---------------------------------------------------------------------------
(* table: a catalog swaps what it lists of an hour, if that has not changed since it was read. The table is read *)
(* first and the tile after it, so what was read of a tile that has changed since is never written over newer.   *)

Follow(a) == \E h \in Hours :
    /\ "table" \in Doing /\ actors[a].at = "idle" /\ Exists(h)
    /\ Go(a, [Idle EXCEPT !.at = "load", !.hour = h])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

(* `left` holds the commits that the table is to list, `commit` the change of the table that was seen. *)
LoadTable(a) ==
    /\ actors[a].at = "load"
    /\ LET h == actors[a].hour IN
       Go(a, [actors[a] EXCEPT !.at = "read", !.commit = table[h].rev,
                               !.left = IF Rule("table first") THEN {} ELSE tiles[h].commits])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

ReadTile(a) ==
    /\ actors[a].at = "read"
    /\ LET h == actors[a].hour IN
       Go(a, [actors[a] EXCEPT !.at = "bring", !.left = IF Rule("table first") THEN tiles[h].commits ELSE @,
                               !.commit = IF Rule("table first") THEN @ ELSE table[h].rev])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

(* What comes of it: the table follows, or another was faster, or its catalog is away. `mine` says: for a sweep. *)
Bring(a) ==
    /\ actors[a].at = "bring"
    /\ LET h == actors[a].hour
           listed == table[h]
       IN  \/ Rest(a) /\ UNCHANGED table
           \/ /\ listed.rev = actors[a].commit
              /\ table' = IF listed.commits = actors[a].left THEN table
                          ELSE [table EXCEPT ![h] = [rev |-> listed.rev + 1, commits |-> actors[a].left]]
              /\ IF actors[a].mine THEN GoTo(a, "abort") ELSE Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled>>

---------------------------------------------------------------------------
(* sweep: the table follows, abort, ask who it is, delete (R3). `left` holds what is still to be asked. *)

Sweep(a) == \E h \in Hours :
    /\ actors[a].at = "idle" /\ tiles[h].garbage # {}
    /\ Go(a, [Idle EXCEPT !.at = IF "table" \in Doing /\ Rule("follow") THEN "load" ELSE "abort",
                          !.hour = h, !.seen = tiles[h], !.mine = TRUE])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Abort(a) ==
    /\ actors[a].at = "abort"
    /\ LET garbage == actors[a].seen.garbage IN
       /\ uploads' = {u \in uploads : u[1] \notin garbage}
       /\ Go(a, [actors[a] EXCEPT !.at = "ask", !.left = {<<c, o>> \in garbage \X Offsets : o \in Files(c)}])
    /\ UNCHANGED <<edge, objects, flights, manifests, tiles, topic, misled, table>>

Ask(a) ==
    /\ actors[a].at = "ask"
    /\ IF actors[a].left = {} THEN GoTo(a, "swept")
       ELSE LET f == CHOOSE f \in actors[a].left : TRUE IN
            IF IsOf(f[2], f[1])
            THEN GoTo(a, "delete")
            ELSE Go(a, [actors[a] EXCEPT !.left = @ \ {f}])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Delete(a) ==
    /\ actors[a].at = "delete"
    /\ LET f == CHOOSE f \in actors[a].left : TRUE IN
       /\ objects' = [objects EXCEPT ![Name(f[1], f[2])] = Nobody]
       /\ Go(a, [actors[a] EXCEPT !.at = "ask", !.left = @ \ {f}])
    /\ UNCHANGED <<edge, uploads, flights, manifests, tiles, topic, misled, table>>

Swept(a) ==
    /\ actors[a].at = "swept"
    /\ LET h == actors[a].hour IN
       IF Same(h, actors[a].seen) THEN Swap(h, [actors[a].seen EXCEPT !.garbage = {}]) ELSE UNCHANGED tiles
    /\ Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

---------------------------------------------------------------------------
(* clean: fences the writer of a manifest that its tile does not name, and sweeps after that (C7). *)

Look(a) == \E h \in Hours : \E c \in Ids \ Free :
    /\ "clean" \in Doing
    /\ actors[a].at = "idle" /\ manifests[c].hour = h
    /\ c \notin tiles[h].commits \union tiles[h].garbage \union {tiles[h].pending}
    /\ \E o \in Files(c) : <<c, o>> \in uploads \/ objects[Name(c, o)] = c
    /\ Go(a, [Idle EXCEPT !.at = IF Rule("fence") THEN "fence" ELSE "ask",
                          !.hour = h, !.seen = tiles[h], !.commit = c,
                          !.left = IF Rule("fence") THEN {} ELSE {<<c, o>> : o \in Files(c)}])
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Fence(a) ==
    /\ actors[a].at = "fence"
    /\ LET h == actors[a].hour
           seen == actors[a].seen
       IN IF Same(h, seen) THEN Swap(h, [seen EXCEPT !.garbage = @ \union {actors[a].commit}]) ELSE UNCHANGED tiles
    /\ Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, topic, misled, table>>

---------------------------------------------------------------------------
(* And what nobody asks for: a process dies, a bucket's lifecycle drops an upload. *)

Die(a) ==
    /\ "die" \in Doing
    /\ actors[a].at # "idle" /\ Rest(a)
    /\ UNCHANGED <<edge, objects, uploads, flights, manifests, tiles, topic, misled, table>>

Vanish == \E u \in uploads :
    /\ uploads' = uploads \ {u}
    /\ UNCHANGED <<edge, objects, flights, manifests, tiles, topic, actors, misled, table>>

Next ==
    \/ Vanish \/ Arrive
    \/ \E a \in Actors :
        \/ ReadTopic(a) \/ Announce(a) \/ Create(a) \/ FinishCreation(a) \/ CreateClosed(a) \/ Close(a) \/ Closed(a)
        \/ Begin(a) \/ Rewrite(a) \/ Switch(a) \/ Refused(a)
        \/ Settle(a) \/ Complete(a) \/ Answered(a) \/ Head(a) \/ Settled(a) \/ Lost(a)
        \/ Follow(a) \/ LoadTable(a) \/ ReadTile(a) \/ Bring(a)
        \/ Sweep(a) \/ Abort(a) \/ Ask(a) \/ Delete(a) \/ Swept(a) \/ Look(a) \/ Fence(a) \/ Die(a)

Spec == Init /\ [][Next]_vars

Bounded == \A h \in Hours : tiles[h].rev <= MaxRev

---------------------------------------------------------------------------
(* Invariants, by their names in commit.md. *)

Landed(h) == UNION {Files(c) : c \in tiles[h].commits}

NoLoss == \A h \in Hours : \A c \in tiles[h].commits : \A o \in Files(c) : objects[Name(c, o)] = c          \* I1, I2

Once == \A h \in Hours : Exists(h) =>                                                                      \* I3
    /\ Landed(h) = tiles[h].start .. tiles[h].committed - 1
    /\ \A c, d \in tiles[h].commits : c # d => Files(c) \intersect Files(d) = {}

Apart == (0 \in Hours /\ 1 \in Hours /\ Exists(0) /\ Exists(1)) => tiles[0].end = tiles[1].start            \* I4, I5

Within == \A h \in Hours : Exists(h) => tiles[h].committed <= tiles[h].end                                 \* T5

NotMisled == ~misled                                                                                       \* I8

Scans == \A h \in Hours : \A c \in table[h].commits : \A o \in Files(c) : objects[Name(c, o)] = c        \* R3, C14

(* When nobody works and nothing is owed, what is visible is listed. Of those who died in a slow Complete, `clean`    *)
(* finds the rest.                                                                                                  *)
AtRest == ("die" \notin Doing /\ flights = {} /\ \A a \in Actors : actors[a] = Idle) =>                      \* I10
    \A h \in Hours : Tidy(h) =>
        \A c \in Ids \ Free : \A o \in Offsets :
            (manifests[c].hour = h /\ objects[Name(c, o)] = c) => c \in tiles[h].commits

(* Nobody changed the tile between a writer's look and its switch. *)
Fenced == [][\A a \in Actors : \A h \in Hours :                                                           \* I6, C6
    (tiles'[h].pending # tiles[h].pending /\ actors[a].at = "switch" /\ tiles'[h].pending = actors[a].commit)
        => tiles[h] = actors[a].seen]_vars

Forever == [][\A h \in Hours : Exists(h) =>                                                                \* I5, I6
    /\ tiles'[h].start = tiles[h].start
    /\ tiles[h].end # Open => tiles'[h].end = tiles[h].end
    /\ tiles'[h].committed >= tiles[h].committed
    /\ tiles'[h].rev >= tiles[h].rev
    /\ tiles[h].pending # Nobody => tiles'[h].pending \in {Nobody, tiles[h].pending}]_vars
===========================================================================
