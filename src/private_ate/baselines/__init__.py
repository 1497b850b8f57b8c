"""The competitors: other people's methods, each with the promise that it can keep."""
