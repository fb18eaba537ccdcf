"""Files of offices and publishers: zip archives of XML, most of them."""
