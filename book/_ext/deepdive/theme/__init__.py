"""The page around the content: theme options, the buttons in its header, the sidebar and how to cite."""
