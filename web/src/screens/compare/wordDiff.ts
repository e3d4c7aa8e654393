import { diffArrays } from "diff";

/** A stretch of two texts: the same in both, only in A (`removed`), or only in B (`added`). */
export interface DiffPart {
  kind: "same" | "removed" | "added";
  text: string;
}

/** A word with the white space after it; words are compared without it. */
interface Unit {
  key: string;
  text: string;
}

/** Texts that differ in more words are compared line by line, and those with more lines as a whole. */
const MOST_EDITS = 2_000;

/** Returns how text B differs from text A, in the order of the texts; removed stands before added. */
export function diffWords(a: string, b: string): DiffPart[] {
  const [words, lines] = [/^\s+|\S+\s*/g, /[^\n]*\n|[^\n]+$/g];
  return diffUnits(a, b, words) ?? diffUnits(a, b, lines) ?? inOrder({ removed: a, added: b });
}

/** Returns how much two texts have in common, from 0 to 1. */
export function sharedPart(parts: readonly DiffPart[]): number {
  const lengths = { same: 0, removed: 0, added: 0 };
  for (const { kind, text } of parts) lengths[kind] += text.trim().length;
  const all = 2 * lengths.same + lengths.removed + lengths.added;
  return all === 0 ? 1 : (2 * lengths.same) / all;
}

/** Returns the parts of two texts as units of a pattern; undefined where too many differ. */
function diffUnits(a: string, b: string, pattern: RegExp): DiffPart[] | undefined {
  const changes = diffArrays(unitsOf(a, pattern), unitsOf(b, pattern), {
    comparator: (left, right) => left.key === right.key,
    maxEditLength: MOST_EDITS,
  });
  if (!changes) return undefined;
  const parts: DiffPart[] = [];
  let change = { removed: "", added: "" };
  for (const { added, removed, value } of changes) {
    const text = value.map((unit) => unit.text).join("");
    if (removed) change.removed += text;
    else if (added) change.added += text;
    else {
      parts.push(...inOrder(change), { kind: "same", text });
      change = { removed: "", added: "" };
    }
  }
  return [...parts, ...inOrder(change)];
}

function unitsOf(text: string, pattern: RegExp): Unit[] {
  return (text.match(pattern) ?? []).map((unit) => ({ key: unit.trim(), text: unit }));
}

function inOrder({ removed, added }: { removed: string; added: string }): DiffPart[] {
  return [
    ...(removed ? [{ kind: "removed" as const, text: removed }] : []),
    ...(added ? [{ kind: "added" as const, text: added }] : []),
  ];
}
