"""Tools for developers. They are not installed with gwmond."""
