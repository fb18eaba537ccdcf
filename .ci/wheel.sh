#!/usr/bin/env bash
# Builds the sdist and from it the wheel, installs that into an empty environment away from the
# checkout, and runs the sample there, beside folders that have the stages' names.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD
python=${PYTHON:-python3}
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT

"$python" -m venv "$away/build"
"$away/build/bin/pip" install --quiet build
"$away/build/bin/python" -m build --outdir "$away/dist" "$checkout"
"$python" -m venv "$away/empty"

# The README's first commands, from an empty environment to the first answer.
first=$(sed -n '/^```console$/,/^```$/p;/^```$/q' README.md | sed '/^```/d')
mkdir "$away/reader"
text='BT /F 12 Tf 72 720 Td (The memorandum was written by Nadia Fenwright in 2006.) Tj ET'
cat >"$away/reader/report.pdf" <<PDF
%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>> endobj
4 0 obj <</Length ${#text}>> stream
$text
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
trailer <</Root 1 0 R>>
PDF
SECONDS=0
(
  cd "$away/reader"
  export PATH=$away/empty/bin:$PATH LEPORELLO_CACHE=$away/reader/cache
  pip() { command pip "$@" --quiet --no-compile --find-links "$away/dist" -c "$checkout/constraints.txt"; }
  eval "$first" | tee answer.txt
)
echo "the README's first answer took $SECONDS s, with the download of all packages"
grep -q "Nadia Fenwright" "$away/reader/answer.txt"

mkdir -p "$away/project/readers" "$away/project/chunkers"
echo 'raise SystemExit("of the user")' | tee "$away/project/readers/__init__.py" >"$away/project/chunkers/__init__.py"
cd "$away/project"
export LEPORELLO_CACHE=$away/cache PATH=$away/empty/bin:$PATH
leporello --version
leporello check
leporello run --task sample --limit 2
# One pipeline of each file of built-in declarations; those whose models are not here get a reader without one.
declared() { leporello run "$@" --task sample --limit 1 --out "runs/$1" >/dev/null; }
declared longbench-middle --set 'reader={class: Lead}' --set 'combiner={class: Stuff}'
declared muld-narrativeqa-each --set 'reader={class: BestSentence}'
declared parents
declared scrolls-naive-qasper --set reader.share=0.05
declared shuffle-roberta --set chunker.tokenizer=words --set 'reader={class: Lead}' --set 'combiner={class: Stuff}'
declared tables
declared zero-scrolls-naive-qasper
echo "Grigor keeps the ferry. Ann found the fax." >note.txt
leporello ask note.txt "Who found the fax?"
python -m leporello list >/dev/null
"$away/empty/bin/pip" uninstall --quiet --yes pip setuptools
megabytes=$(du -sm "$away"/empty/lib/python*/site-packages | cut -f1)
echo "site-packages: $megabytes MB"
test "$megabytes" -le 540 # 100 of them are our own reader: onnxruntime, and its weights
