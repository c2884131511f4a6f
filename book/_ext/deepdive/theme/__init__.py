"""What stands around a page: the theme's options and formulas, the buttons above it, how to cite it."""
