"""Figures: plots in the book's style, diagrams of boxes and arrows, the model's diagram, and SVG export."""
