"""`python -m qnnci` is `qnnci`."""

from qnnci.cli.main import main

main()
