"""Tests of guessed and declared encodings, on texts of many languages."""

from pathlib import Path

import pytest
from contents import read

from leporello.core.errors import UserError
from leporello.loaders import Csv, Html, Markdown, Subtitles, Text
from leporello.loaders.files import Format, load, load_bytes
from leporello.text.looks import codec_of

TEXTS = {
    "Polish": "Klucz ma pani Wójcik. Łódź stoi przy nabrzeżu siódmym, a źródło jest czyste.",
    "Czech": "Příliš žluťoučký kůň úpěl ďábelské ódy. Klíč má paní Nováková, loď stojí v přístavu.",
    "Hungarian": "A kulcs Kovács asszonynál van, a hajó a hetedik rakparton áll, őszintén örültek.",
    "Croatian": "Ključ ima gospođa Šarić, a nijedan ribar nije znao da je šuma čudesna.",
    "Russian": "Ключ находится у госпожи Петровой, а корабль стоит у седьмого причала.",
    "Ukrainian": "Ключ має пані Шевченко, а корабель стоїть біля сьомого причалу. Її пісні.",
    "Bulgarian": "Ключът е у госпожа Петрова, а корабът стои на седмия кей чак до мръкване.",
    "Greek": "Το κλειδί το έχει η κυρία Παπαδοπούλου και το πλοίο βρίσκεται στην προβλήτα.",
    "Turkish": "Anahtar Yılmaz Hanım'da, gemi ise yedinci iskelede duruyor. Balıkçılar bilmiyordu.",
    "Hebrew": "המפתח נמצא אצל גברת כהן והספינה עומדת ברציף השביעי. איש מן הדייגים לא ידע.",
    "Arabic": "المفتاح عند السيدة مريم والسفينة تقف عند الرصيف السابع. لعب الأطفال في المرج.",
    "Lithuanian": "Raktą turi ponia Kazlauskienė, o laivas stovi prie septintosios krantinės.",
    "Latvian": "Atslēga ir pie Ozola kundzes, bet kuģis stāv pie septītās piestātnes. Bērni.",
    "Estonian": "Võti on proua Tamme käes ja laev seisab seitsmenda kai ääres, õunu sõi žürii.",
    "Thai": "กุญแจอยู่กับคุณสมชาย เรือจอดอยู่ที่ท่าเรือหมายเลขเจ็ด ไม่มีชาวประมงคนใดรู้",
    "Japanese": "鍵は田中さんが持っています。船は七番埠頭に停まっていて、漁師たちは知らなかった。",
    "Chinese": "钥匙在王太太那里，船停在第七号码头。没有一个渔夫知道那本书是星期三下午找到的。",
    "Taiwanese": "鑰匙在王太太那裡，船停在第七號碼頭。沒有一個漁夫知道那本書是星期三下午找到的。",
    "Korean": "열쇠는 김 여사가 가지고 있고 배는 일곱 번째 부두에 서 있다. 아무도 몰랐다.",
    "French": "La clé est chez Madame Lefèvre et le bateau se trouve près du quai, à l'été.",
    "German": "Den Schlüssel hat Frau Müller. Die Kinder aßen süße Äpfel und spielten im Grünen.",
    "Danish": "Nøglen har fru Sørensen, og skibet ligger ved kajen. Børnene legede på engen.",
}
_WEST, _CENTRAL = ["cp1252", "macintosh", "cp850"], ["cp1250", "iso8859-2", "cp852"]
_BALTIC, _WIDE = ["cp1257", "iso8859-13"], ["utf-16-le", "utf-16-be"]
ENCODINGS = {
    **dict.fromkeys(("Polish", "Czech", "Hungarian"), _CENTRAL), "Croatian": _CENTRAL[:2],
    "Russian": ["cp1251", "koi8-r", "iso8859-5", "cp866", "mac-cyrillic", "utf-16-le"],
    "Ukrainian": ["cp1251", "koi8-u", "iso8859-5"], "Bulgarian": ["cp1251", "iso8859-5"],
    "Greek": ["cp1253", "iso8859-7"], "Turkish": ["cp1254"], "Hebrew": ["cp1255", "iso8859-8"],
    "Arabic": ["cp1256", "iso8859-6", "utf-32-le"], "Lithuanian": _BALTIC, "Latvian": _BALTIC,
    "Estonian": _BALTIC[:1], "Thai": ["cp874", "tis-620", "utf-16-le"],
    "Japanese": ["cp932", "euc-jp", "iso-2022-jp", "utf-32-be", *_WIDE],
    "Chinese": ["gb18030", "gbk", *_WIDE], "Taiwanese": ["big5"],
    "Korean": ["euc-kr", "cp949", "utf-16-be"],
    "French": [*_WEST, "iso8859-15"], "German": _WEST, "Danish": _WEST[:1],
}  # fmt: skip
PAIRS = [(language, name) for language, names in ENCODINGS.items() for name in names]


def loaded(folder: Path, name: str, content: str, encoding: str) -> str:
    """Returns the text that a file in an encoding is read as; requires that nothing is lost."""
    path = folder / name
    path.write_bytes(content.encode(encoding))
    document = load(path)
    assert not document.losses
    return document.text


@pytest.mark.parametrize(("language", "encoding"), PAIRS)
def test_a_text_is_read_in_its_encoding(tmp_path: Path, language: str, encoding: str) -> None:
    """One line is enough, and long lines are not cut within a character."""
    text = TEXTS[language]
    assert loaded(tmp_path, "a.txt", text, encoding) == text
    [note] = load(tmp_path / "a.txt").notes
    assert "is not UTF-8 and declares no encoding: read as" in note
    long = f"x {(text + ' ') * 60}\n\n{(text + ' ') * 90}"
    assert loaded(tmp_path, "a.txt", long, encoding) == long


@pytest.mark.parametrize(("language", "encoding"), PAIRS)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,500\n{}\n\n"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.500\n{}\n\n"),
        ("a.html", "<html><body>\n<p class=x>{}</p>\n</body></html>"),
        ("a.csv", "name;note\n1;{}\n2;{}\n"),
        ("a.eml", "From: a@x.example\nSubject: x\nDate: Fri, 3 May 2024 10:00:00 +0000\n\n{}\n"),
    ],
)
def test_formats_with_markup_are_read_in_their_encoding(
    tmp_path: Path, name: str, form: str, language: str, encoding: str
) -> None:
    if name == "a.eml" and encoding.startswith("utf-16"):
        pytest.skip("a mail without a charset is in bytes that contain ASCII")
    text = TEXTS[language]
    assert text in loaded(tmp_path, name, form.replace("{}", text), encoding)


@pytest.mark.parametrize("cut", range(1, 8))
@pytest.mark.parametrize("encoding", ["cp932", "euc-jp", "gb18030", "utf-8"])
def test_a_file_that_ends_within_a_character_is_read_in_its_encoding(
    encoding: str, cut: int
) -> None:
    content = (TEXTS["Japanese"] * 9).encode(encoding)[:-cut]
    assert read(content, "a.txt").text.startswith(TEXTS["Japanese"] * 8)


@pytest.mark.parametrize(
    ("label", "language", "encoding"),
    [
        ("windows-874", "Thai", "cp874"),
        ("x-sjis", "Japanese", "cp932"),
        ("Windows-31J", "Japanese", "cp932"),
        ("x-euc-jp", "Japanese", "euc-jp"),
        ("iso-2022-jp", "Japanese", "iso-2022-jp"),
        ("x-gbk", "Chinese", "gbk"),
        ("gb2312", "Chinese", "gb18030"),
        ("cn-big5", "Taiwanese", "big5"),
        ("ks_c_5601-1987", "Korean", "cp949"),
        ("iso-8859-8-i", "Hebrew", "iso8859-8"),
        ("x-mac-cyrillic", "Russian", "mac-cyrillic"),
        ("koi8-ru", "Ukrainian", "koi8-u"),
        ("x-cp1250", "Polish", "cp1250"),
        ("iso88592", "Polish", "iso8859-2"),
        ("iso-8859-9", "Turkish", "cp1254"),
        ("iso-8859-10", "Danish", "iso8859-10"),
        ("windows-1258", "French", "cp1258"),
    ],
)
def test_names_of_encodings_mean_what_browsers_take_them_for(
    label: str, language: str, encoding: str
) -> None:
    """Pages, mails and an option of the loader may have any name of the Encoding Standard."""
    text = TEXTS[language]
    page = f"<html><meta charset={label}><p>{text}"
    assert read(page.encode(encoding), "a.html").text == text
    head = f"From: a@x.example\nDate: x\nContent-Type: text/plain; charset={label}\n\n"
    assert read(head.encode() + text.encode(encoding), "a.eml").text.endswith(text)
    assert load_bytes(text.encode(encoding), Path("a.txt"), Text(label)).text == text


@pytest.mark.parametrize(
    ("loader", "name", "form"),
    [
        (Text("x-cp1250"), "a.txt", "{}"),
        (Markdown("x-cp1250"), "a.md", "# {}"),
        (Csv(encoding="x-cp1250"), "a.csv", "a,b\n1,{}"),
        (Html("x-cp1250"), "a.html", "<html><meta charset=koi8-r><p>{}"),
        (Subtitles("x-cp1250"), "a.srt", "1\n00:00:01,000 --> 00:00:02,500\n{}\n"),
    ],
)
def test_loaders_take_an_encoding(tmp_path: Path, loader: Format, name: str, form: str) -> None:
    path = tmp_path / name
    path.write_bytes(form.replace("{}", "Zażółć gęślą jaźń").encode("cp1250"))
    assert "Zażółć gęślą jaźń" in load(path, loader=loader).text
    if name != "a.html":
        assert f"loader {{class: {type(loader).__name__}, encoding" in load(path).notes[0]


@pytest.mark.parametrize("label", ["klingon", "hex", "replacement", ""])
def test_unknown_names_of_encodings_are_errors(tmp_path: Path, label: str) -> None:
    with pytest.raises(LookupError):
        codec_of(label)
    (tmp_path / "a.txt").write_text("text")
    if label:
        with pytest.raises(UserError, match=f"unknown encoding '{label}'"):
            load(tmp_path / "a.txt", loader=Text(label))
