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

/** So many comparisons of two units are made; larger texts are compared line by line. */
const MOST_COMPARISONS = 4_000_000;

/** Returns how text B differs from text A, in the order of the texts; removed stands before added. */
export function diffWords(a: string, b: string): DiffPart[] {
  const words = [wordsOf(a), wordsOf(b)] as const;
  if (comparisons(...words) <= MOST_COMPARISONS) return diffUnits(...words);
  return diffUnits(linesOf(a), linesOf(b));
}

/** Returns how much two texts have in common, from 0 to 1. */
export function sharedPart(parts: readonly DiffPart[]): number {
  const lengths = { same: 0, removed: 0, added: 0 };
  for (const { kind, text } of parts) lengths[kind] += text.trim().length;
  const all = 2 * lengths.same + lengths.removed + lengths.added;
  return all === 0 ? 1 : (2 * lengths.same) / all;
}

function comparisons(a: readonly Unit[], b: readonly Unit[]): number {
  return (a.length + 1) * (b.length + 1);
}

function wordsOf(text: string): Unit[] {
  return unitsOf(text, /^\s+|\S+\s*/g);
}

function linesOf(text: string): Unit[] {
  return unitsOf(text, /[^\n]*\n|[^\n]+$/g);
}

function unitsOf(text: string, pattern: RegExp): Unit[] {
  return (text.match(pattern) ?? []).map((unit) => ({ key: unit.trim(), text: unit }));
}

function diffUnits(a: readonly Unit[], b: readonly Unit[]): DiffPart[] {
  let start = 0;
  while (start < a.length && start < b.length && isSame(a[start], b[start])) start += 1;
  let end = 0;
  while (
    end < a.length - start &&
    end < b.length - start &&
    isSame(a[a.length - 1 - end], b[b.length - 1 - end])
  ) {
    end += 1;
  }
  const parts = new Parts();
  for (const unit of b.slice(0, start)) parts.add("same", unit);
  diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end), parts);
  for (const unit of b.slice(b.length - end)) parts.add("same", unit);
  return parts.finish();
}

/** Walks the table of longest common subsequences; texts too large for one differ as a whole. */
function diffMiddle(a: readonly Unit[], b: readonly Unit[], parts: Parts): void {
  const lengths = comparisons(a, b) <= MOST_COMPARISONS ? commonLengths(a, b) : null;
  const width = b.length + 1;
  const at = (i: number, j: number) => lengths?.[i * width + j] ?? 0;
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]];
    if (lengths && left && right && left.key === right.key) {
      parts.add("same", right);
      i += 1;
      j += 1;
    } else if (left && (!right || at(i + 1, j) >= at(i, j + 1))) {
      parts.add("removed", left);
      i += 1;
    } else if (right) {
      parts.add("added", right);
      j += 1;
    }
  }
}

/** Returns, row by row, how many units the rest of A from i has in common with the rest of B from j. */
function commonLengths(a: readonly Unit[], b: readonly Unit[]): Uint32Array {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const place = i * width + j;
      lengths[place] = isSame(a[i], b[j])
        ? (lengths[place + width + 1] ?? 0) + 1
        : Math.max(lengths[place + width] ?? 0, lengths[place + 1] ?? 0);
    }
  }
  return lengths;
}

function isSame(a: Unit | undefined, b: Unit | undefined): boolean {
  return a?.key === b?.key;
}

/** Collects parts; between two same parts all that was removed comes first, then all that was added. */
class Parts {
  private readonly done: DiffPart[] = [];
  private same = "";
  private removed = "";
  private added = "";

  add(kind: DiffPart["kind"], unit: Unit): void {
    if (kind === "same") {
      this.flushChange();
      this.same += unit.text;
    } else {
      this.flushSame();
      this[kind] += unit.text;
    }
  }

  finish(): DiffPart[] {
    this.flushSame();
    this.flushChange();
    return this.done;
  }

  private flushSame(): void {
    if (this.same) this.done.push({ kind: "same", text: this.same });
    this.same = "";
  }

  private flushChange(): void {
    if (this.removed) this.done.push({ kind: "removed", text: this.removed });
    if (this.added) this.done.push({ kind: "added", text: this.added });
    this.removed = "";
    this.added = "";
  }
}
