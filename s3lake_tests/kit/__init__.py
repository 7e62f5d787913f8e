"""Set-ups that tests of several rooms share."""
