"""Believable rows to look at. Row number i is the same row on every machine and in every run: nothing is random."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

from django.db import transaction

from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from users.models import Role, Status, User

USERS = 250
# Everything lies between these two; users come during the first two years.
FIRST = datetime(2024, 7, 1, tzinfo=UTC)
LAST = datetime(2026, 8, 31, tzinfo=UTC)
TWO_YEARS = timedelta(days=730)
_MICROSECONDS = TWO_YEARS // timedelta(microseconds=1)
# No password has this hash: nobody logs in as a demo user.
UNUSABLE_PASSWORD = "!"
EMOJI = "🌻"


class Name(NamedTuple):
    written: str
    latin: str


class Culture(NamedTuple):
    language: str
    given: list[Name]
    family: list[Name]
    pattern: str
    # The pattern once all pairs of a given and a family name are used up.
    pattern_again: str


class Person(NamedTuple):
    name: str
    local_part: str
    language: str


class DemoUser(NamedTuple):
    name: str
    email: str
    role: str
    status: str
    password: str
    created_at: datetime
    updated_at: datetime


class DemoOrder(NamedTuple):
    item: str
    qty: int
    created_at: datetime


class DemoPost(NamedTuple):
    title: str
    body: str
    created_at: datetime
    updated_at: datetime


class Thread(NamedTuple):
    language: str
    title: str
    body: str
    comments: list[str]
    # Whether the comments come from one speaker of each language, in the order of CULTURES.
    everybody: bool = False


# --- Names -----------------------------------------------------------------------------------------------------------

_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "’": ""}
)


def _in_latin(word: str) -> str:
    """The ASCII form of a Latin name, for an email."""
    plain = unicodedata.normalize("NFKD", word.lower().translate(_LETTERS_WITHOUT_DECOMPOSITION))
    return re.sub("[^a-z-]", "", plain)


def _names(text: str) -> list[Name]:
    """Names apart by blanks: `Zoë`, whose ASCII form is plain to see, or `Олена/olena`. `_` stands for a blank."""
    pairs = (word.replace("_", " ").partition("/")[::2] for word in text.split())
    return [Name(written, latin or _in_latin(written)) for written, latin in pairs]


def _culture(language: str, given: str, family: str, again: str = "", pattern: str = "{given} {family}") -> Culture:
    return Culture(language, _names(given), _names(family), pattern, again or pattern)


_SECOND_GIVEN = "{given} {second} {family}"
_DOUBLE_FAMILY = "{given} {family}-{other}"

CULTURES = [
    _culture(
        "es",
        "José María Íñigo Lucía Andrés Sofía Joaquín Inés Raúl Belén Álvaro Noemí Martín Begoña",
        "García Muñoz Pérez Núñez Ibáñez Gómez Ordóñez Suárez Vázquez Peña Rincón Cárdenas Zúñiga",
        _SECOND_GIVEN,
    ),
    _culture(
        "uk",
        "Олена/olena Тарас/taras Ганна/hanna Юрій/yurii Ірина/iryna Богдан/bohdan Оксана/oksana Андрій/andrii "
        "Соломія/solomiia Василь/vasyl Дарина/daryna Остап/ostap Леся/lesia",
        "Шевченко/shevchenko Коваленко/kovalenko Бондаренко/bondarenko Ткаченко/tkachenko Лисенко/lysenko "
        "Кравченко/kravchenko Їжакевич/yizhakevych Гриценко/hrytsenko Панченко/panchenko Симоненко/symonenko "
        "Мельник/melnyk Гончар/honchar",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "zh",
        "伟/wei 芳/fang 敏/min 静/jing 磊/lei 娟/juan 涛/tao 明/ming 燕/yan 杰/jie 霞/xia 鹏/peng 慧/hui 宇/yu",
        "王/wang 李/li 张/zhang 刘/liu 陈/chen 杨/yang 黄/huang 赵/zhao 吴/wu 周/zhou 徐/xu 孙/sun 马/ma 欧阳/ouyang",
        "{family}{given}{second}",
        "{family}{given}",
    ),
    _culture(
        "fr",
        "Zoë Chloé François Hélène Jérôme Loïc Maëlle Noémie Rémi Gaël Éloïse Benoît Anaïs Étienne",
        "Lefèvre Béranger Dupré Château Gauthier Mathéo Lemaître Côté Périer Forêt Fréchette Désiré Boulé",
        _SECOND_GIVEN,
    ),
    _culture(
        "ar",
        "أحمد/ahmad محمود/mahmoud خالد/khalid يوسف/yousef عمر/omar حسن/hassan طارق/tariq سامي/sami كريم/karim "
        "إبراهيم/ibrahim زياد/ziad نبيل/nabil فارس/fares",
        "الحداد/alhaddad النجار/alnajjar المصري/almasri الخطيب/alkhatib العلي/alali منصور/mansour الشامي/alshami "
        "القاسم/alqasim درويش/darwish الزهراني/alzahrani بغدادي/baghdadi الفارس/alfares",
        _SECOND_GIVEN,
    ),
    _culture(
        "de",
        "Jürgen Käthe Björn Sören Jörg Änne Günther Bärbel Lukas Frieda Matthäus Rüdiger Annegret Karl",
        "Müller Groß Schäfer Köhler Weiß Böhm Krämer Jäger Vögele Strauß Lößner Brückner Grün",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "ja",
        "花子/hanako 太郎/taro 美咲/misaki 健太/kenta さくら/sakura 陽菜/hina 翔太/shota 結衣/yui 大輔/daisuke "
        "あかり/akari 直樹/naoki 由美子/yumiko 蓮/ren",
        "佐藤/sato 鈴木/suzuki 高橋/takahashi 田中/tanaka 渡辺/watanabe 伊藤/ito 山本/yamamoto 中村/nakamura "
        "小林/kobayashi 加藤/kato 吉田/yoshida 山田/yamada 井上/inoue",
        pattern="{family} {given}",
    ),
    _culture(
        "pl",
        "Łukasz Małgorzata Paweł Bożena Michał Grażyna Stanisław Agnieszka Bartłomiej Zofia Błażej Jadwiga Elżbieta",
        "Wójcik Zając Dąbek Król Pająk Wróbel Dudek Mazur Gołąb Żak Kołodziej Świerk",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "hi",
        "प्रिया/priya अमित/amit सुनीता/sunita राहुल/rahul नेहा/neha विजय/vijay अनिता/anita संजय/sanjay कविता/kavita "
        "रोहन/rohan मीरा/meera अर्जुन/arjun दीपा/deepa",
        "शर्मा/sharma वर्मा/verma गुप्ता/gupta सिंह/singh मिश्रा/mishra जोशी/joshi पटेल/patel यादव/yadav त्रिपाठी/tripathi "
        "चौहान/chauhan अग्रवाल/agarwal नायर/nair",
        _SECOND_GIVEN,
    ),
    _culture(
        "cs",
        "Božena Tereza Kateřina Růžena Eliška Anežka Ludmila Zdeňka Lucie Markéta Žofie Štěpánka Alžběta",
        "Nováková Dvořáková Svobodová Procházková Kučerová Veselá Němcová Pokorná Růžičková Benešová Šimková",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "el",
        "Ελένη/eleni Μαρία/maria Αικατερίνη/aikaterini Σοφία/sofia Δήμητρα/dimitra Βασιλική/vasiliki Άννα/anna "
        "Χρυσούλα/chrysoula Ζωή/zoi Ευαγγελία/evangelia Θάλεια/thaleia Κλειώ/kleio",
        "Παπαδοπούλου/papadopoulou Οικονόμου/oikonomou Γεωργίου/georgiou Βλάχου/vlachou Δημητρίου/dimitriou "
        "Νικολάου/nikolaou Αγγέλου/angelou Καραγιάννη/karagianni Μακρή/makri Ιωάννου/ioannou Αλεξίου/alexiou",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "ko",
        "민준/minjun 서연/seoyeon 지훈/jihun 수빈/subin 현우/hyeonu 하은/haeun 도윤/doyun 지우/jiu 예진/yejin "
        "성호/seongho 유나/yuna 태양/taeyang 은지/eunji",
        "김/kim 이/lee 박/park 최/choi 정/jung 강/kang 조/cho 윤/yoon 장/jang 임/lim 한/han 오/oh 남궁/namgung",
        pattern="{family}{given}",
    ),
    _culture(
        "vi",
        "Hương Thảo Đức Dũng Lan Tuấn Mỹ_Linh Quỳnh Hải Phượng Khánh Ngọc Trâm Bảo",
        "Nguyễn Trần Lê Phạm Hoàng Đặng Võ Đỗ Bùi Ngô Dương Huỳnh Lý",
        "{family} {second} {given}",
        "{family} {given}",
    ),
    _culture(
        "tr",
        "Çağla İpek Gülşen Oğuz Ümit Şebnem Yiğit Özlem Çetin Işıl Tuğba Gökhan Ayşe",
        "Yılmaz Öztürk Çelik Şahin Kılıç Güneş Doğan Aydın Yıldırım Bulut Ünal Çınar",
        "{given} {family} {other}",
    ),
    _culture(
        "he",
        "נועה/noa יעל/yael דוד/david מיכל/michal אורי/uri תמר/tamar איתן/eitan שירה/shira עומר/omer רחל/rachel "
        "יונתן/yonatan ליאור/lior הדס/hadas",
        "כהן/cohen לוי/levi מזרחי/mizrahi פרץ/peretz ביטון/biton אברהם/avraham פרידמן/friedman שפירא/shapira "
        "גבאי/gabay רוזן/rosen ברק/barak אלון/alon",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "sv",
        "Åsa Håkan Göran Märta Öyvind Linnéa Björn Søren Maj-Britt Sölve Ingrid Åke Torbjørn",
        "Ångström Lindström Sjöberg Sørensen Bjørnstad Öberg Nyström Åkesson Grönlund Hägg Møller Norén",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "bn",
        "অনিকা/anika রহিম/rahim সুমন/suman ফারহানা/farhana তানভীর/tanvir মিতা/mita শাহিন/shahin রুমা/ruma আরিফ/arif "
        "জয়া/joya নাসরিন/nasrin দেবাশীষ/debashish",
        "চৌধুরী/chowdhury রহমান/rahman দাস/das ইসলাম/islam হোসেন/hossain সেন/sen আহমেদ/ahmed সরকার/sarkar খান/khan "
        "বিশ্বাস/biswas মজুমদার/majumdar",
        _SECOND_GIVEN,
    ),
    _culture(
        "ru",
        "Анна/anna Екатерина/ekaterina Наталья/natalya Ольга/olga Полина/polina Светлана/svetlana Юлия/yulia "
        "Алёна/alyona Татьяна/tatyana Вера/vera Любовь/lyubov Ксения/ksenia Зоя/zoya",
        "Соколова/sokolova Ковалёва/kovalyova Морозова/morozova Волкова/volkova Лебедева/lebedeva Орлова/orlova "
        "Белова/belova Королёва/korolyova Зайцева/zaytseva Щербакова/shcherbakova Ершова/yershova",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "ta",
        "கவிதா/kavitha முருகன்/murugan மீனா/meena கார்த்திக்/karthik லட்சுமி/lakshmi சுரேஷ்/suresh பிரியா/priya "
        "அருண்/arun வள்ளி/valli செல்வம்/selvam தமிழ்/tamil நந்தினி/nandhini",
        "சுப்பிரமணியன்/subramanian கிருஷ்ணன்/krishnan ராமசாமி/ramasamy பாண்டியன்/pandian நடராஜன்/natarajan "
        "ஐயர்/iyer சேகர்/sekar குமார்/kumar வேலு/velu ராஜா/raja மணி/mani",
        _SECOND_GIVEN,
    ),
    _culture(
        "th",
        "สมชาย/somchai มาลี/malee อรุณ/arun กนกวรรณ/kanokwan ประเสริฐ/prasert ณัฐ/nat พิมพ์/pim วิชัย/wichai "
        "สุดา/suda ธนา/thana ปิยะ/piya นภา/napha",
        "สุขใจ/sukjai ทองดี/thongdee ศรีสุข/srisuk วงศ์สวัสดิ์/wongsawat แก้วมณี/kaewmanee บุญมา/boonma จันทร์เพ็ญ/chanpen "
        "รักไทย/rakthai พงษ์ไพร/phongphrai ใจดี/jaidee ชัยวัฒน์/chaiwat",
    ),
    _culture(
        "pt",
        "João Conceição Antônio Letícia Vinícius Júlia Estêvão Flávia Tomé Lídia Caetano Mônica Sebastião",
        "Gonçalves Araújo Simões Magalhães Brandão Assunção Falcão Guimarães Sá Leitão Mourão Patrício",
        _SECOND_GIVEN,
    ),
    _culture(
        "ka",
        "ნინო/nino გიორგი/giorgi თამარ/tamar ლევან/levan ქეთევან/ketevan დავით/davit მარიამ/mariam ზურაბ/zurab "
        "ანა/ana ირაკლი/irakli ელენე/elene ვახტანგ/vakhtang",
        "ბერიძე/beridze კაპანაძე/kapanadze გელაშვილი/gelashvili მაისურაძე/maisuradze ლომიძე/lomidze "
        "წერეთელი/tsereteli ჯაფარიძე/japaridze ხუციშვილი/khutsishvili დოლიძე/dolidze აბაშიძე/abashidze",
    ),
    _culture(
        "hy",
        "Անի/ani Արամ/aram Մարիամ/mariam Տիգրան/tigran Նարե/nare Հայկ/hayk Լիլիթ/lilit Գոռ/gor Սոնա/sona Վահե/vahe "
        "Գայանե/gayane Դավիթ/davit",
        "Հակոբյան/hakobyan Գրիգորյան/grigoryan Սարգսյան/sargsyan Պետրոսյան/petrosyan Խաչատրյան/khachatryan "
        "Վարդանյան/vardanyan Մարտիրոսյան/martirosyan Ավետիսյան/avetisyan Մինասյան/minasyan Ղազարյան/ghazaryan",
    ),
    _culture(
        "am",
        "አበበ/abebe ሰላም/selam ዳዊት/dawit ሂሩት/hirut ተስፋዬ/tesfaye ማርታ/marta ዮሐንስ/yohannes ብርቱካን/birtukan ሙሉ/mulu "
        "ኤልሳቤጥ/elsabet ካሳ/kassa ትዕግስት/tigist",
        "ከበደ/kebede ታደሰ/tadesse በቀለ/bekele ግርማ/girma ኃይሉ/hailu መኮንን/mekonnen አለሙ/alemu ወልደ/wolde ደስታ/desta "
        "ገብረ/gebre ሽፈራው/shiferaw",
        _SECOND_GIVEN,
    ),
    _culture(
        "sr",
        "Милош/milos Јелена/jelena Ђорђе/djordje Љубица/ljubica Његош/njegos Душица/dusica Стефан/stefan "
        "Ружа/ruza Жарко/zarko Милица/milica Вук/vuk Чедомир/cedomir",
        "Петровић/petrovic Јовановић/jovanovic Ђурић/djuric Николић/nikolic Живковић/zivkovic Павловић/pavlovic "
        "Љубичић/ljubicic Стојановић/stojanovic Џакић/dzakic Савић/savic Ћирић/ciric",
        _DOUBLE_FAMILY,
    ),
    _culture(
        "hu",
        "Ágnes Győző Zsófia Gergő Márta Ödön Kinga Balázs Tünde Lőrinc Éva Csaba Boglárka",
        "Szabó Kővári Nagy Tóth Horváth Németh Farkas Gőz Szűcs Molnár Vörös Fehér",
        "{family}-{other} {given}",
        "{family} {given}",
    ),
    _culture(
        "en",
        "Siobhán Oliver Amelia Seán Niamh Harper Aoife Theodore Maeve Wesley Róisín Beatrix Conor",
        "O’Connor Smith Whitfield Ó_Briain Fairweather Okafor Walsh MacLeod Nakamura-Reid Thorne Adeyemi Ashworth",
        _DOUBLE_FAMILY,
    ),
]
DOMAINS = ("example.com", "example.org", "example.net")


def person(number: int) -> Person:
    """The name of a person, its ASCII form for an email, and the language that the person writes in."""
    turn, at = divmod(number, len(CULTURES))
    language, givens, families, pattern, pattern_again = CULTURES[at]
    # Along the diagonals, all pairs of a given and a family name come once before any comes again.
    shift, at = divmod(turn, len(givens))
    given, family = givens[at], families[(at + shift) % len(families)]
    again = shift // len(families) % min(len(givens), len(families))
    name = (pattern_again if again else pattern).format(
        given=given.written,
        family=family.written,
        second=givens[(at + again) % len(givens)].written,
        other=families[(at + shift + again) % len(families)].written,
    )
    if number % 101 == 26:
        name = f"{name} {EMOJI}"
    return Person(name, f"{given.latin}.{family.latin}".replace(" ", ""), language)


# --- Single rows -----------------------------------------------------------------------------------------------------

_PRIME = 1_000_003


def scattered(number: int, stride: int, count: int) -> int:
    """A value from 0 up to `count`: neighbours get values far apart, and a million rows each value equally often.

    Traits with different strides, primes all of them, do not depend on each other.
    """
    return number * stride % _PRIME * count // _PRIME


def moment(position: int, total: int) -> datetime:
    """When the user at a position of so many came: evenly over two years, at all hours of the day."""
    thousandths = position * 1000 + scattered(position, 619_979, 1000)
    return FIRST + timedelta(microseconds=_MICROSECONDS * thousandths // (total * 1000))


def later(start: datetime, number: int, stride: int, end: datetime = LAST) -> datetime:
    return start + (end - start) * scattered(number, stride, 1_000_000) / 1_000_000


def soon_after(start: datetime, number: int) -> datetime:
    """Within a month: rows that are made user by user then also lie in the order of time, as grown ones do."""
    return later(start, number, 336_403, start + timedelta(days=30))


def user(number: int, created_at: datetime, suffix: str = "") -> DemoUser:
    name, local_part, _ = person(number)
    return DemoUser(
        name,
        f"{local_part}{suffix}@{DOMAINS[scattered(number, 417_941, 3)]}",
        role := _role(number),
        _status(number, role),
        UNUSABLE_PASSWORD,
        created_at,
        later(created_at, number, 224_737) if scattered(number, 479_909, 4) == 0 else created_at,
    )


def _role(number: int) -> str:
    place = scattered(number, 732_713, 10_000)
    return Role.ADMIN.value if place == 0 else Role.SUPPORT.value if place <= 100 else Role.USER.value


def _status(number: int, role: str) -> str:
    # An active administrator who cannot log in would pass for the last one, whom the service never gives up.
    inactive = role == Role.ADMIN.value or scattered(number, 271_829, 8) == 0
    return Status.INACTIVE.value if inactive else Status.ACTIVE.value


def order(number: int, created_at: datetime) -> DemoOrder:
    item = ITEMS[scattered(number, 387_137, len(ITEMS))]
    variant = VARIANTS[scattered(number, 839_117, len(VARIANTS))]
    return DemoOrder(f"{item}{variant}", QUANTITIES[scattered(number, 173_867, len(QUANTITIES))], created_at)


def amount(number: int) -> Decimal:
    """A price: many small, few high, and with the endings that prices have."""
    places = scattered(number, 521_393, 3)
    whole = 1 + scattered(number, 648_391, (20, 200, 2_000)[places])
    return Decimal(whole * 100 + CENTS[scattered(number, 918_733, len(CENTS))]).scaleb(-2)


def post(number: int, created_at: datetime) -> DemoPost:
    """A post that needs no particular author. Every fourth is one of the written ones, the others are put together."""
    if number % 4 == 0:
        thread = THREADS[scattered(number, 443_629, len(THREADS))]
        title, body = thread.title, thread.body
    else:
        subject = SUBJECTS[scattered(number, 311_537, len(SUBJECTS))]
        title = ANGLES[scattered(number, 587_131, len(ANGLES))].format(subject)
        body = " ".join(
            sentences[scattered(number, stride, len(sentences))]
            for sentences, stride in zip(SENTENCES, (134_921, 268_937, 402_761), strict=True)
        )
    changed = scattered(number, 781_283, 5) == 0
    return DemoPost(title, body, created_at, later(created_at, number, 195_533) if changed else created_at)


ITEMS = [
    "A5 notebook", "Fountain pen", "Desk lamp", "Oak bookshelf", "Wool blanket", "Espresso cups, set of four",
    "Cast-iron pan", "Linen tablecloth", "Rain jacket", "Hiking socks", "Bicycle bell", "Bread knife", "Yoga mat",
    "Garden trowel", "Watering can", "Beeswax candles", "Jigsaw puzzle, 1000 pieces", "Ukulele strings", "USB-C cable",
    "Mechanical keyboard", "Laptop stand", "Noise-cancelling headphones", "Webcam cover", "Picture frame 30 × 40 cm",
    "Café filter papers", "Crème brûlée dishes", "Käsereibe", "Müslischale", "Tapis en jute",
    "Bougie à la cire d’abeille", "Cesta de mimbre", "Azulejo pintado à mão", "Ręcznik lniany", "Porcelánový hrnek",
    "Çay bardağı, altı adet",
    "Nón lá", "Вишиванка", "Самовар", "Чајник", "Μπρίκι", "Κομπολόι", "إبريق شاي", "سجادة صغيرة", "נר ריחני",
    "मसाला डिब्बा", "হাতে বোনা গামছা", "பித்தளை விளக்கு", "ผ้าไหมไทย", "龙井茶 250 克", "竹筷十双", "抹茶 100 g", "風呂敷",
    "도자기 찻잔", "한지 공책", "ჩურჩხელა", "Խաչքար, փոքր", "የቡና ጀበና",
]  # fmt: skip
VARIANTS = ["", "", "", ", blue", ", dark green", ", grey", ", large", ", small", " (second hand)", ", gift wrapped"]
QUANTITIES = [1] * 12 + [2] * 6 + [3, 3, 4, 4, 5, 6, 8, 10, 12, 24, 50, 250]
CENTS = [0, 0, 0, 50, 90, 95, 99, 99, 49, 25, 10, 30]

# --- Posts and comments ----------------------------------------------------------------------------------------------

SUBJECTS = [
    "sourdough", "night trains", "my balcony tomatoes", "learning Greek", "the old harbour", "paper maps", "beekeeping",
    "winter swimming", "second-hand bicycles", "choir practice", "the new library", "fixing a clock", "slow mornings",
    "letters by hand", "the Sunday market", "mending clothes", "chess with my uncle", "film cameras", "a rainy holiday",
    "mountain huts", "tea without sugar", "street names", "compost", "growing up bilingual", "the last tram",
    "cooking for one", "birdsong at dawn", "moving house", "village festivals", "the neighbour’s cat",
]  # fmt: skip
ANGLES = [
    "Notes on {}", "What nobody told me about {}", "In praise of {}", "A year of {}", "Questions about {}",
    "Still thinking about {}", "A beginner’s view of {}", "Three things I like about {}", "Why I came back to {}",
    "Small joys: {}", "Help wanted: {}", "Not quite an essay on {}",
]  # fmt: skip
SENTENCES = [
    [
        "I did not plan to write about this.",
        "It started with a conversation on the bus.",
        "My sister asked me about it last week.",
        "For years I thought it was not for me.",
        "This is mostly a reminder to myself.",
        "A friend lent me a book, and here we are.",
        "We tried it for the first time in March.",
        "People keep telling me that it is easy.",
        "I have changed my mind twice already.",
        "The weather was bad, so I had the time.",
        "You will need patience and a good chair.",
    ],
    [
        "The first attempt went wrong, of course.",
        "It costs less than I had feared.",
        "What surprised me most was how quiet it is.",
        "You learn more from the mistakes than from the advice.",
        "My grandmother would have laughed.",
        "Ask somebody older; they usually know.",
        "It takes an afternoon, not a weekend.",
        "The instructions are wrong in two places.",
        "I wrote down what worked and what did not.",
        "Half of it is waiting.",
        "There is a small shop behind the station that has everything.",
        "Nobody there spoke my language, and it did not matter.",
        "By the third time, my hands knew what to do.",
    ],
    [
        "Tell me how you do it.",
        "I will try again in spring.",
        "Pictures follow when the light is better.",
        "That is all for today.",
        "Has anybody here had the same problem?",
        "I would do it again tomorrow.",
        "If you know a better way, write to me.",
        "Next time I will bring a friend.",
        "It was worth getting up early.",
        "And no, I am not giving it up.",
        "The rest you will find out by yourself.",
    ],
]
THREADS = [
    Thread(
        "en",
        "Which word of your language do you like best?",
        "Mine is “gloaming”: the light after the sun has gone and before the lamps are on.\n\n"
        "Write yours below, in your own letters.",
        [
            "Madrugada: las horas antes del amanecer.",
            "Затишок. Коли надворі дощ, а вдома тепло.",
            "缘分。没有别的语言能说清楚。",
            "Dépaysement. On ne le comprend qu’en voyage.",
            "طرب: ما تفعله الأغنية الجميلة بالقلب.",
            "Waldeinsamkeit, auch wenn es hier keiner benutzt.",
            "木漏れ日。葉の間からこぼれる光のことです。",
            "Żółć! Spróbujcie to wymówić.",
            "जुगाड़। इसके बिना हमारा घर नहीं चलता।",
            "Pohoda. Není kam spěchat.",
            "Φιλότιμο. Δεν μεταφράζεται, μόνο εξηγείται.",
            "정. 오래 알고 지내면 생기는 마음이에요.",
            "Thương. Nhẹ hơn yêu mà sâu hơn thích.",
            "Yakamoz: ay ışığının denizdeki parıltısı.",
            "דווקא. נסו לתרגם את זה.",
            "Lagom. Inte för mycket, inte för lite.",
            "অভিমান। যাকে ভালোবাসি, শুধু তার উপরেই হয়।",
            "Тоска. А ещё люблю слово «почемучка».",
            "மழை. சொல்லும்போதே குளிர்ச்சி.",
            "เกรงใจ คำเดียวแต่อธิบายยาวมาก",
            "Cafuné: passar a mão devagar pelo cabelo de alguém.",
            "შემომეჭამა. თითქოს თავისით მოხდა.",
            "Կարոտ։ Ուրիշ լեզվով այդպես չի հնչում։",
            "ትዝታ። ዘፈንም ነው፣ ስሜትም ነው።",
            "Инат. Знамо ми добро шта је то.",
            "Elvágyódás. Pedig jó itthon.",
            "Reading all of these on the train. Best thread in months 😊",
        ],
        everybody=True,
    ),
    Thread(
        "en",
        "The 6:12 from the coast",
        "If you ever have the choice, take the early train. It follows the water for forty minutes, and on a clear "
        "morning you see the islands.\n\nBring your own coffee: the kiosk opens at seven.",
        [
            "Sit on the left side going north!",
            "The conductor with the red scarf is a treasure.",
            "Adding it to my list.",
        ],
    ),
    Thread(
        "en",
        "My sourdough finally rose",
        "Eleven loaves like bricks, and then this one. The trick was the fridge: a whole night, not two hours.",
        ["Congratulations! How warm is your kitchen?", "Mine is at loaf seven. There is hope."],
    ),
    Thread(
        "en",
        "Lost: one grey cat, answers to Professor",
        "He left on Tuesday through the kitchen window. White paw, torn ear, very polite. Please look in your sheds.",
        ["Saw him near the bakery this morning.", "Update: he is home, and offended.", "Welcome back, Professor."],
    ),
    Thread(
        "es",
        "El pan de mi abuela",
        "Nunca apuntó la receta. «Harina, la que pida», decía. Llevo tres años intentando averiguar cuánta pide.",
        ["La mía decía lo mismo del aceite.", "¿Has probado con masa madre?", "Qué bonito. Cuéntanos cuando salga."],
    ),
    Thread(
        "es",
        "Un paseo por Cádiz en enero",
        "Sin gente, sin prisa, y con el mar por los dos lados. Llevad chaqueta: el viento de levante no perdona.",
        ["Enero es el mejor mes, no se lo digáis a nadie.", "¿Dónde se come bien por allí?"],
    ),
    Thread(
        "uk",
        "Як я навчилася їздити на велосипеді у сорок років",
        "Сусідський хлопчик тримав сідло, а я кричала. За тиждень уже їздила на базар по яблука.",
        ["Ви надихаєте! Мені тридцять вісім, ще встигну.", "А хлопчикові — велике яблуко."],
    ),
    Thread(
        "uk",
        "Вишневе варення без кісточок",
        "Шпилька для волосся працює краще за будь-яку машинку. На три кілограми пішов один серіал.",
        ["Моя бабуся робила так само.", "Який саме серіал?"],
    ),
    Thread(
        "zh",
        "周末去爬山",
        "山顶有一家小茶馆，老板七十多岁，每天自己背水上去。茶很普通，风景很好。",
        ["请问是哪座山？", "老板的精神真让人佩服。", "下周我也去看看。"],
    ),
    Thread(
        "zh",
        "学做饺子的第一天",
        "妈妈说我的饺子像石头。不过煮熟以后，味道还不错。",
        ["像石头也是饺子。", "多包几次就好了，加油！"],
    ),
    Thread(
        "fr",
        "Petit éloge de la sieste",
        "Vingt minutes, pas une de plus, et le téléphone dans une autre pièce. Le reste de la journée vous remercie.",
        [
            "Chez nous c’est sacré depuis toujours.",
            "Vingt minutes ? Je n’ai jamais réussi à m’arrêter là.",
            "Bien dit.",
        ],
    ),
    Thread(
        "fr",
        "Où acheter de bonnes graines de tomates ?",
        "Je cherche des variétés anciennes, si possible de la région. Celles du supermarché n’ont rien donné.",
        ["Essaie la bourse aux graines, en mars.", "J’ai de la noire de Crimée à échanger."],
    ),
    Thread(
        "ar",
        "قهوة الصباح على الشرفة",
        "أستيقظ قبل الجميع بنصف ساعة. الشارع هادئ، والقهوة ساخنة، والعصافير لا تسأل عن شيء.",
        ["أجمل نصف ساعة في اليوم.", "بالهيل أم من دونه؟"],
    ),
    Thread(
        "ar",
        "كتاب أنهيته في ليلة واحدة",
        "بدأت الصفحة الأولى بعد العشاء، ولم أنتبه إلا مع أذان الفجر. منذ سنوات لم يحدث لي هذا.",
        ["ما اسم الكتاب؟", "هذا شعور لا يعوّض.", "شكرًا، أضفته إلى القائمة."],
    ),
    Thread(
        "de",
        "Der Zug hatte Verspätung, zum Glück",
        "So kam ich mit der Dame auf Gleis 4 ins Gespräch. "
        "Sie sammelt seit 1971 Fahrkarten und weiß zu jeder eine Geschichte.",
        ["Solche Begegnungen hat man nur auf Bahnhöfen.", "Hat sie auch Edmondsonsche Karten?", "Schön erzählt!"],
    ),
    Thread(
        "de",
        "Wie bekommt man Rost von einer Gusspfanne?",
        "Flohmarkt, drei Euro, außen wie innen braun. Stahlwolle, Salz oder Essig? Ich möchte nichts kaputtmachen.",
        ["Salz und eine halbe Kartoffel.", "Danach dreimal einbrennen, dann hält sie hundert Jahre."],
    ),
    Thread(
        "ja",
        "雨の日の古本屋",
        "雨宿りのつもりで入った店で、子どものころ読んだ本を見つけました。裏表紙に、知らない子の名前がありました。",
        ["素敵な出会いですね。", "なんという本ですか。", "古本にはそういう楽しみがあります。"],
    ),
    Thread(
        "pl",
        "Grzyby w tym roku jak szalone",
        "Dwa kosze w godzinę, a las jeszcze pełny. Miejsca oczywiście nie zdradzę.",
        ["Nikt nigdy nie zdradza.", "U nas same kurki, też dobrze."],
    ),
    Thread(
        "hi",
        "पहली बार अकेले सफ़र",
        "माँ ने दस बार फ़ोन किया, और मैंने दस बार कहा कि सब ठीक है। पहाड़ सचमुच उतने ही नीले हैं।",
        ["बहुत सुंदर लिखा है।", "माँएँ ऐसी ही होती हैं।"],
    ),
    Thread(
        "cs",
        "Jak zachránit orchidej",
        "Dostala jsem ji k narozeninám a už má jen dva listy. Prý méně vody a více trpělivosti.",
        ["A hlavně průhledný květináč.", "Moje ožila po roce. Držím palce!"],
    ),
    Thread(
        "el",
        "Ένα απόγευμα στο λιμάνι",
        "Οι ψαράδες μάζευαν τα δίχτυα και μάλωναν για το ποδόσφαιρο. Έμεινα μέχρι που άναψαν τα φώτα.",
        ["Σαν να ήμουν εκεί.", "Και ποιος κέρδισε τελικά;"],
    ),
    Thread(
        "ko",
        "할머니의 김치 레시피",
        "계량컵은 없고 전부 손으로 하십니다. 동영상으로 찍어 두었는데, 손이 너무 빨라서 잘 안 보여요.",
        ["저희 할머니도 똑같으세요.", "느리게 재생해 보세요!"],
    ),
    Thread(
        "vi",
        "Quán phở đầu ngõ",
        "Bác chủ quán nhớ tên từng người khách. Hôm qua tôi đến muộn, bác vẫn để phần cho tôi một bát.",
        ["Đọc mà thấy đói.", "Những quán như vậy giờ hiếm lắm."],
    ),
    Thread(
        "tr",
        "Balkonda domates yetiştirmek",
        "Üç saksı, bol güneş ve biraz inat. Ağustosta ilk domatesi kahvaltıda yedik.",
        ["Ellerine sağlık!", "Hangi tohumu kullandın?"],
    ),
    Thread(
        "he",
        "שבת בבוקר בשוק הישן",
        "אין כמעט אף אחד, חוץ מהחתולים ומהזקן שמתקן שעונים. הוא אמר לי שהזמן לא ממהר לשום מקום.",
        ["איזה משפט יפה.", "אני מכיר אותו, הוא תיקן את השעון של סבא שלי."],
    ),
    Thread(
        "sv",
        "Första doppet i april",
        "Fyra grader i vattnet, och jag skrek så att måsarna flög. Sedan bastu och kanelbullar.",
        ["Du är galen. Jag kommer med nästa gång.", "Bullarna är halva nöjet."],
    ),
    Thread(
        "bn",
        "বৃষ্টির দিনে খিচুড়ি",
        "জানালার বাইরে বৃষ্টি, রান্নাঘরে খিচুড়ির গন্ধ। ছোটবেলার কথা মনে পড়ে গেল।",
        ["সঙ্গে ইলিশ ভাজা ছিল তো?", "পড়েই খিদে পেয়ে গেল।"],
    ),
    Thread(
        "ru",
        "Письмо от старой подруги",
        "Настоящее, бумажное, с маркой. Мы не виделись двенадцать лет, а почерк совсем не изменился.",
        ["Обязательно ответьте тоже от руки!", "Так тепло стало."],
    ),
    Thread(
        "ta",
        "மழைக்கால மாலை",
        "தேநீரும் பழைய பாடல்களும். வேறு என்ன வேண்டும்?",
        ["சூடான பஜ்ஜி வேண்டும்!", "அருமையான வரிகள்."],
    ),
    Thread(
        "th",
        "แมวข้างบ้านมานอนบนรถ",
        "เช้านี้ออกจากบ้านสายเพราะไม่กล้าปลุก เจ้าของบอกว่ามันเลือกแต่รถที่อุ่น",
        ["ทาสแมวของแท้", "ขอดูรูปหน่อย"],
    ),
    Thread(
        "pt",
        "O elétrico 28 às seis da manhã",
        "A essa hora não há turistas, só a padeira e o senhor do jornal. A cidade parece mais pequena e mais nossa.",
        ["Que saudade de Lisboa.", "O senhor do jornal é o meu tio!"],
    ),
    Thread(
        "ka",
        "ბებიას ეზოში",
        "ვაზი ისევ იქ არის, ხის მაგიდაც. მხოლოდ ჩვენ გავიზარდეთ.",
        ["რა კარგად თქვი.", "ჩემი ბავშვობაც ასეთი იყო."],
    ),
    Thread(
        "hy",
        "Ծիրանի ժամանակն է",
        "Շուկայում ամեն ինչ նարնջագույն է։ Տատիկս ասում է, որ այս տարի ամենաքաղցրն է։",
        ["Ամեն տարի այդպես է ասում։", "Կարոտել եմ այդ համը։"],
    ),
    Thread(
        "am",
        "የእሁድ ቡና",
        "ጎረቤቶች ሁሉ ይሰበሰባሉ፣ ሦስት ጊዜ ይጠጣል፣ ወሬውም አያልቅም።",
        ["የሳምንቱ ምርጥ ሰዓት ነው።", "ፋንዲሻ አይረሳም!"],
    ),
    Thread(
        "sr",
        "Шљиве су зреле",
        "Деда каже да се не чека ниједан дан више. Ко има времена, нека дође са гајбицом.",
        ["Стижем у суботу.", "Сачувај и мени за пекмез."],
    ),
    Thread(
        "hu",
        "Vonattal a Balatonhoz",
        "Lehúzott ablak, zsíros kenyér, és valaki mindig énekel a kupéban. Ennél jobb nyár nincs.",
        ["Gyerekkorom!", "Melyik állomáson érdemes leszállni?"],
    ),
]


# --- The demo data ---------------------------------------------------------------------------------------------------


def load() -> None:
    """Fills an empty database: users, three orders each, a payment for every second order, and the written posts."""
    with transaction.atomic():
        people = User.objects.bulk_create(User(**row._asdict()) for row in _users())
        Order.objects.bulk_create(sorted(_orders(people), key=attrgetter("created_at")))
        Payment.objects.bulk_create(sorted(_payments(people), key=attrgetter("created_at")))
        talks = sorted(_talks(people), key=lambda talk: talk[0].created_at)
        Post.objects.bulk_create([post for post, _ in talks])
        comments = [comment for _, comments in talks for comment in comments]
        Comment.objects.bulk_create(sorted(comments, key=attrgetter("created_at")))


def _users() -> Iterator[DemoUser]:
    for number in range(1, USERS + 1):
        row = user(number, moment(number - 1, USERS))
        # The shares of a million users leave a small set without anybody in charge.
        role = {3: Role.ADMIN, 8: Role.SUPPORT, 30: Role.SUPPORT, 57: Role.SUPPORT, 101: Role.ADMIN}.get(number)
        yield row if role is None else row._replace(role=role.value, status=_status(number, role.value))


def _orders(people: list[User]) -> Iterator[Order]:
    for number in range(3 * len(people)):
        customer = people[number // 3]
        row = order(number, later(customer.created_at, number, 289_573))
        yield Order(user=customer, **row._asdict())


def _payments(people: list[User]) -> Iterator[Payment]:
    for number in range(3 * len(people) // 2):
        payer = people[number * 2 // 3]
        yield Payment(user=payer, amount=amount(number), created_at=later(payer.created_at, number, 156_007))


def _talks(people: list[User]) -> Iterator[tuple[Post, list[Comment]]]:
    """Each post, written by somebody who speaks its language, with the comments of others who do."""
    speakers = defaultdict(list)
    for number, speaker in enumerate(people, 1):
        speakers[person(number).language].append(speaker)
    for number, thread in enumerate(THREADS):
        here = speakers[thread.language]
        author = here[number % len(here)]
        created_at = later(author.created_at, number + 1, 619_979, FIRST + TWO_YEARS)
        post = Post(user=author, title=thread.title, body=thread.body, created_at=created_at, updated_at=created_at)
        circles = [speakers[culture.language] for culture in CULTURES] if thread.everybody else [here]
        yield post, list(_comments(post, thread.comments, circles, number))


def _comments(post: Post, texts: list[str], circles: list[list[User]], number: int) -> Iterator[Comment]:
    at = post.created_at
    for place, text in enumerate(texts):
        circle = circles[place % len(circles)]
        author = circle[(number + place + 1) % len(circle)]
        at = max(at, author.created_at) + timedelta(minutes=3 + scattered(number + place, 429_497, 300))
        yield Comment(post=post, user=author, text=text, created_at=at, updated_at=at)
