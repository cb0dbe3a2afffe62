"""Documents that are text: plain, Markdown, HTML, catalogues, subtitles, tables."""
