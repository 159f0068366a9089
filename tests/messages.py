#!/usr/bin/env python3
"""messages.py ROOT: compares the error sentences of all sources with tests/golden/messages.txt, so that a reviewer sees all of
them at one place. PLUMB_UPDATE=1 rewrites the file. A sentence is a string in a call that makes an error, or one with a remedy
after "; " that is not the help of an option. Before its remedy it has at most 20 words."""

import difflib
import os
import pathlib
import re
import sys

FOLDERS = 'base models kernels comm results launch plumbline bench'.split()
SUFFIXES = ('.cpp', '.h', '.cu', '.sh', '')
OTHER_TEXT = re.compile(r'man_page\.cpp$|completions\.cpp$|^kernels/cuda/native/')
CALL = re.compile(r'\b(?:(?P<error>Error|refuse\w*|fail|unusable_\w+|cannot_\w+)|\w*option|\w*flag|positional|OptionTable \w+)\s*\(')
TOKEN = re.compile(r'R"\((?:.*?)\)"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/|[(){}\[\]]', re.S)
SHELL = re.compile(r'\b(?:refuse|give_up) \S+ "((?:[^"\\]|\\.)*)"')
MOST_WORDS = 20


def literals_of(text):
    """Strings, neighbors joined, each with the calls around it: 'error', 'help'."""
    kinds = {match.end() - 1: 'error' if match['error'] else 'help' for match in CALL.finditer(text)}
    strings, open_brackets, end_before = [], [], None
    for token in TOKEN.finditer(text):
        mark = token.group(0)
        if token.group(1) is not None:
            if end_before is not None and not text[end_before:token.start()].strip():
                strings[-1][0] += token.group(1)
            else:
                strings.append([token.group(1), set(open_brackets)])
            end_before = token.end()
        elif mark in '([{':
            open_brackets.append(kinds.get(token.start()))
        elif mark in ')]}':
            open_brackets.pop()
    return strings


def messages_of(path, name):
    if OTHER_TEXT.search(name):
        return []
    if path.suffix in ('', '.sh'):
        return SHELL.findall(path.read_text())
    return [string for string, calls in literals_of(path.read_text())
            if ' ' in string.strip() and 'help' not in calls and not string.endswith('.')
            and ('error' in calls or re.search(r'; \w', string) and path.suffix != '.h')]


def main():
    root = pathlib.Path(sys.argv[1])
    golden = root / 'tests/golden/messages.txt'
    lines, long = [], []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob('*') if path.is_file() and path.suffix in SUFFIXES):
        name = path.relative_to(root).as_posix()
        messages = messages_of(path, name)
        lines += [f'\n{name}'] * bool(messages) + [f'  {message}' for message in messages]
        long += [f'{name}: {message}' for message in messages if '; ' in message and len(message.split('; ')[0].split()) > MOST_WORDS]
    text = 'Every error sentence, by source. PLUMB_UPDATE=1 tests/messages.py . rewrites this file.\n' + '\n'.join(lines) + '\n'
    if os.environ.get('PLUMB_UPDATE') == '1':
        golden.write_text(text)
    elif golden.read_text() != text:
        sys.stdout.writelines(difflib.unified_diff(golden.read_text().splitlines(True), text.splitlines(True), 'messages.txt', 'now'))
        sys.exit('the error sentences have changed; read them, then PLUMB_UPDATE=1 tests/messages.py .')
    if len(lines) < 500:
        sys.exit(f'only {len(lines)} lines of messages; messages.py no longer finds them')
    if long:
        sys.exit(f'over {MOST_WORDS} words before the remedy; shorten:\n' + '\n'.join(long))


main()
