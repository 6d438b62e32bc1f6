"""What works on modules and their parameters from outside, under the paths that torch has."""

from . import rnn as rnn
