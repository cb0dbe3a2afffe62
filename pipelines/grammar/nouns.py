"""The nouns: `english[/irregular plural], article German, plural[, weak or genitive]` a line.

A kind groups nouns that play the same parts: verbs, adjectives and prepositions name kinds.
A plural of "-" keeps a noun to the singular, because it is a mass noun or because its English
plural would look like its singular.
"""

from pipelines.grammar.entries import Noun

MASS_KINDS = ("stuff", "drink", "cause")
_GENDERS = {"der": "m", "die": "f", "das": "n"}
_VOWELS = "aeiouyäöü"

_TABLE = {
    "person": """
        teacher, der Lehrer, Lehrer
        doctor, der Arzt, Ärzte
        student, der Student, Studenten, weak
        boy, der Junge, Jungen, weak
        man/men, der Mann, Männer
        woman/women, die Frau, Frauen
        child/children, das Kind, Kinder
        girl, das Mädchen, Mädchen
        neighbor, der Nachbar, Nachbarn, weak
        friend, der Freund, Freunde
        colleague, der Kollege, Kollegen, weak
        farmer, der Bauer, Bauern, weak
        baker, der Bäcker, Bäcker
        chef, der Koch, Köche
        lawyer, der Anwalt, Anwälte
        king, der König, Könige
        queen, die Königin, Königinnen
        singer, der Sänger, Sänger
        writer, der Schriftsteller, Schriftsteller
        policeman/policemen, der Polizist, Polizisten, weak
        tourist, der Tourist, Touristen, weak
        guest, der Gast, Gäste
        customer, der Kunde, Kunden, weak
        nurse, die Krankenschwester, Krankenschwestern
        waitress/waitresses, die Kellnerin, Kellnerinnen
        actress/actresses, die Schauspielerin, Schauspielerinnen
        gardener, der Gärtner, Gärtner
        musician, der Musiker, Musiker
        president, der Präsident, Präsidenten, weak
        thief/thieves, der Dieb, Diebe
        boss/bosses, der Chef, Chefs, Chefs
    """,
    "kin": """
        father, der Vater, -
        mother, die Mutter, -
        brother, der Bruder, Brüder
        sister, die Schwester, Schwestern
        son, der Sohn, Söhne
        daughter, die Tochter, Töchter
        uncle, der Onkel, Onkel
        aunt, die Tante, Tanten
        grandfather, der Großvater, -
        grandmother, die Großmutter, -
    """,
    "animal": """
        dog, der Hund, Hunde
        cat, die Katze, Katzen
        horse, das Pferd, Pferde
        cow, die Kuh, Kühe
        bird, der Vogel, Vögel
        mouse/mice, die Maus, Mäuse
        bear, der Bär, Bären, weak
        lion, der Löwe, Löwen, weak
        monkey/monkeys, der Affe, Affen, weak
        wolf/wolves, der Wolf, Wölfe
        pig, das Schwein, Schweine
        goose/geese, die Gans, Gänse
        rabbit, das Kaninchen, Kaninchen
    """,
    "food": """
        apple, der Apfel, Äpfel
        egg, das Ei, Eier
        potato/potatoes, die Kartoffel, Kartoffeln
        tomato/tomatoes, die Tomate, Tomaten
        carrot, die Karotte, Karotten
        cake, der Kuchen, Kuchen
        banana, die Banane, Bananen
        sausage, die Wurst, Würste
        pear, die Birne, Birnen
        strawberry/strawberries, die Erdbeere, Erdbeeren
    """,
    "stuff": """
        bread, das Brot, -
        cheese, der Käse, -
        meat, das Fleisch, -
        fish, der Fisch, -
        rice, der Reis, -
        chocolate, die Schokolade, -
    """,
    "drink": """
        milk, die Milch, -
        water, das Wasser, -
        coffee, der Kaffee, -
        tea, der Tee, -
        beer, das Bier, -
        wine, der Wein, -
        juice, der Saft, -
    """,
    "text": """
        book, das Buch, Bücher
        letter, der Brief, Briefe
        newspaper, die Zeitung, Zeitungen
        story/stories, die Geschichte, Geschichten
        novel, der Roman, Romane
        poem, das Gedicht, Gedichte
        report, der Bericht, Berichte
        message, die Nachricht, Nachrichten
    """,
    "image": """
        picture, das Bild, Bilder
        photo, das Foto, Fotos
        map, die Landkarte, Landkarten
    """,
    "garment": """
        dress/dresses, das Kleid, Kleider
        shirt, das Hemd, Hemden
        coat, der Mantel, Mäntel
        hat, der Hut, Hüte
        jacket, die Jacke, Jacken
        skirt, der Rock, Röcke
        scarf/scarves, der Schal, Schals, Schals
    """,
    "vehicle": """
        car, das Auto, Autos
        bicycle, das Fahrrad, Fahrräder
        bus/buses, der Bus, Busse, Busses
        train, der Zug, Züge
        ship, das Schiff, Schiffe
        boat, das Boot, Boote
        truck, der Lastwagen, Lastwagen
    """,
    "furniture": """
        table, der Tisch, Tische
        chair, der Stuhl, Stühle
        bed, das Bett, Betten
        sofa, das Sofa, Sofas
        bench/benches, die Bank, Bänke
        shelf/shelves, das Regal, Regale
    """,
    "dish": """
        cup, die Tasse, Tassen
        plate, der Teller, Teller
        glass/glasses, das Glas, Gläser
        bottle, die Flasche, Flaschen
        vase, die Vase, Vasen
    """,
    "object": """
        key/keys, der Schlüssel, Schlüssel
        knife/knives, das Messer, Messer
        umbrella, der Regenschirm, Regenschirme
        suitcase, der Koffer, Koffer
        bag, die Tasche, Taschen
        ball, der Ball, Bälle
        basket, der Korb, Körbe
        box/boxes, die Schachtel, Schachteln
        flower, die Blume, Blumen
    """,
    "valuable": """
        ring, der Ring, Ringe
        clock, die Uhr, Uhren
        camera, die Kamera, Kameras
        gift, das Geschenk, Geschenke
    """,
    "device": """
        lamp, die Lampe, Lampen
        computer, der Computer, Computer
        radio, das Radio, Radios
        machine, die Maschine, Maschinen
    """,
    "opening": """
        window, das Fenster, Fenster
        door, die Tür, Türen
    """,
    "instrument": """
        guitar, die Gitarre, Gitarren
        piano, das Klavier, Klaviere
        violin, die Geige, Geigen
        flute, die Flöte, Flöten
    """,
    "building": """
        house, das Haus, Häuser
        school, die Schule, Schulen
        church/churches, die Kirche, Kirchen
        hotel, das Hotel, Hotels
        restaurant, das Restaurant, Restaurants
        library/libraries, die Bibliothek, Bibliotheken
        museum, das Museum, Museen
        theater, das Theater, Theater
        hospital, das Krankenhaus, Krankenhäuser
        station, der Bahnhof, Bahnhöfe
        castle, das Schloss, Schlösser
        university/universities, die Universität, Universitäten
    """,
    "room": """
        kitchen, die Küche, Küchen
        office, das Büro, Büros
        cellar, der Keller, Keller
        garage, die Garage, Garagen
        room, das Zimmer, Zimmer
    """,
    "area": """
        garden, der Garten, Gärten
        park, der Park, Parks, Parks
        forest, der Wald, Wälder
        city/cities, die Stadt, Städte
        village, das Dorf, Dörfer
    """,
    "open": """
        bridge, die Brücke, Brücken
        street, die Straße, Straßen
        meadow, die Wiese, Wiesen
        roof/roofs, das Dach, Dächer
        island, die Insel, Inseln
    """,
    "waterside": """
        lake, der See, Seen
        river, der Fluss, Flüsse
        beach/beaches, der Strand, Strände
    """,
    "plant": """
        tree, der Baum, Bäume
        bush/bushes, der Busch, Büsche
    """,
    "event": """
        concert, das Konzert, Konzerte
        party/parties, die Feier, Feiern
        meeting, die Sitzung, Sitzungen
        wedding, die Hochzeit, Hochzeiten
        exam, die Prüfung, Prüfungen
        journey/journeys, die Reise, Reisen
        film, der Film, Filme
    """,
    "cause": """
        rain, der Regen, -
        snow, der Schnee, -
        heat, die Hitze, -
        storm, der Sturm, -
        noise, der Lärm, -
        weather, das Wetter, -
    """,
    "topic": """
        problem, das Problem, Probleme
        question, die Frage, Fragen
        idea, die Idee, Ideen
        secret, das Geheimnis, Geheimnisse, Geheimnisses
        exercise, die Übung, Übungen
        song, das Lied, Lieder
        word, das Wort, Wörter
    """,
}


def _regular_genitive(german: str, gender: str) -> str:
    """-es after a sibilant and on one-syllable nouns ending in a consonant, -s elsewhere."""
    if gender == "f":
        return german
    if german[-1] in "sßxz" or german.endswith("sch"):
        return german + "es"
    syllables = sum(
        letter in _VOWELS and (index == 0 or german[index - 1].lower() not in _VOWELS)
        for index, letter in enumerate(german.lower())
    )
    return german + ("es" if syllables == 1 and german[-1] not in _VOWELS else "s")


def _parse(line: str, kind: str) -> Noun:
    fields = [field.strip() for field in line.split(",")]
    english, _, irregular = fields[0].partition("/")
    article, german = fields[1].split()
    plural = "" if fields[2] == "-" else fields[2]
    note = fields[3] if len(fields) > 3 else ""
    weak = note == "weak"
    gender = _GENDERS[article]
    genitive = "" if weak else note or _regular_genitive(german, gender)
    english_plural = (irregular or english + "s") if plural else ""
    return Noun(english, english_plural, german, gender, plural, genitive, weak, kind)


NOUNS: tuple[Noun, ...] = tuple(
    _parse(line, kind) for kind, table in _TABLE.items() for line in table.strip().splitlines()
)
NOUN = {noun.english: noun for noun in NOUNS}
NOUNS_BY_KIND: dict[str, tuple[Noun, ...]] = {
    kind: tuple(noun for noun in NOUNS if noun.kind == kind) for kind in _TABLE
}


def nouns_of(names: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that kinds and single nouns name, each once."""
    found: dict[Noun, None] = {}
    for name in names:
        found.update(dict.fromkeys(NOUNS_BY_KIND.get(name) or (NOUN[name],)))
    return tuple(found)
