"""Documents that are archives of XML: Office files, OpenDocument, EPUB."""
