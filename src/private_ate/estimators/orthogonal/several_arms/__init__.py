"""The orthogonal method for three arms and more: levels of all arms for one ε."""
