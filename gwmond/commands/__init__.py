"""The commands of ``gwmond``, one file each: options that only it has, and what it does."""
