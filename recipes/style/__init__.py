"""The recipe of `leporello-style`: texts by author to a model of whether two are by one."""
