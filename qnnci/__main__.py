"""`python -m qnnci` is `qnnci`."""

from qnnci.cli import main

main()
