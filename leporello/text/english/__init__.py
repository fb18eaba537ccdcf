"""Word-based analysis of English: kinds of questions, content terms, clauses, scripts."""
