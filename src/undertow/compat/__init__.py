"""What programs look for where torch has it, and nowhere else here: `undertow.cuda`, `undertow.fx`.

A module that is not found in its own room is looked for in this folder, and then in names.txt, the
list of torch's public names; what is only listed refuses when it is called. See `refusals`.
"""
