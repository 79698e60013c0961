"""``python -m canon_hermes_plugin.cli`` works like the console script."""

from canon_hermes_plugin.cli.main import main

main()
