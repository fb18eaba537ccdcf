"""Loaders of office documents and e-books, most of which are zip archives of XML."""
