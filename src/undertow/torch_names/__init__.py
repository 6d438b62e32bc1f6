"""Names of torch that libraries ask for, at torch's paths: `undertow.fx.x` may stand here.

A module that is not found in its own room is looked for in this folder, and then in names.txt, the
list of torch's public names; what is only listed refuses when it is called. See `refusals`.
"""
