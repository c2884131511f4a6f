"""Where `smalltorch.measure` stood before: `python -m smalltorch.spectrum` goes on to work."""

from smalltorch.measure import main

if __name__ == "__main__":
    main()
