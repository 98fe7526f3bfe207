"""`python -m stoic` is the command `stoic`."""

from stoic.cli import main

main()
