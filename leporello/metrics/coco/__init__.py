"""Caption metrics of coco-caption (BLEU, ROUGE-L, METEOR), as MuLD uses them.

BLEU and ROUGE-L are reimplemented with identical digits; METEOR and the tokenizer run the original
Java programs line by line (`java`).
"""
