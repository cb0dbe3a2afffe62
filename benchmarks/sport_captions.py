"""Divides Multi30k's captions into those about sport, the "own" text, and all others.

    python benchmarks/sport_captions.py --folder=multi30k/raw --output=runs/sport

FOLDER has train.en.gz, train.de.gz, val.*, and test_2016_flickr.*, as published. A caption is about
sport if its English contains one of the words below. OUTPUT gets general.{train,val,test}.{en,de},
the other captions of each published split, and own.{train,val,test}.{en,de}: those about sport of
all splits, shuffled with seed 1, of which the first 1,000 are for testing, 333 for validation, and
2,500 for training.
"""

import argparse
import gzip
import random
import re
from pathlib import Path

from timing import run

WORDS = """
sport sports ball balls baseball basketball football soccer volleyball softball tennis golf rugby
hockey lacrosse cricket karate judo wrestling wrestler wrestlers wrestle boxing boxer boxers gymnast
gymnasts gymnastics skateboard skateboarder skateboarders skateboarding snowboard snowboarder
snowboarding ski skis skier skiers skiing surfer surfers surfing surfboard surf bicycle bicycles
bike bikes biker bikers bicyclist bicyclists cyclist cyclists cycling game games team teams player
players race races racing racer racers runner runners marathon athlete athletes tournament match
pitcher batter goalie referee stadium racket frisbee swimmer swimmers climber climbers
"""
SPLITS = {"train": "train", "val": "val", "test_2016_flickr": "test"}
OWN_SIZES = {"test": 1000, "val": 333, "train": 2500}
LANGUAGES = ("en", "de")

Pairs = list[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    is_about_sport = re.compile(rf"\b({'|'.join(WORDS.split())})\b", re.IGNORECASE).search
    own: Pairs = []
    for published, name in SPLITS.items():
        pairs = captions(options.folder, published)
        own += [pair for pair in pairs if is_about_sport(pair[0])]
        general = [pair for pair in pairs if not is_about_sport(pair[0])]
        write(options.output / f"general.{name}", general)
    own = list(dict.fromkeys(own))
    random.Random(1).shuffle(own)
    for name, size in OWN_SIZES.items():
        write(options.output / f"own.{name}", own[:size])
        own = own[size:]


def captions(folder: Path, name: str) -> Pairs:
    """Reads the captions of a published split, as (English, German)."""
    sides = []
    for language in LANGUAGES:
        with gzip.open(folder / f"{name}.{language}.gz", "rt", encoding="utf-8") as file:
            sides.append([line.strip() for line in file])
    return list(zip(*sides, strict=True))


def write(prefix: Path, pairs: Pairs) -> None:
    """Writes one file for each language."""
    for language, lines in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in lines)
        Path(f"{prefix}.{language}").write_text(text, encoding="utf-8")
        print(f"{prefix}.{language}: {len(lines):,}")


if __name__ == "__main__":
    run(main)
