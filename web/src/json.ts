/**
 * A number that JavaScript would print in other digits: an integer above 2^53, `1.0`, `-0.0`, `1e400`.
 * It is sent and shown as it came. Calculate with `Number(it)`.
 */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  valueOf(): number {
    return Number(this.text);
  }

  toString(): string {
    return this.text;
  }

  /** Only `writeJson` knows how to write it. */
  toJSON(): string {
    return MARK + this.text;
  }
}

/** What the service prints as a number with a fraction; `Number(it)` calculates with it. */
export type JsonNumber = number | ExactNumber;

/** Nobody can have this text in a value: it is new in each page. */
const MARK = `${String.fromCharCode(0)}${crypto.randomUUID?.() ?? crypto.getRandomValues(new Uint32Array(4)).join("-")} `;
const WRITTEN_MARK = JSON.stringify(MARK).slice(0, -1);

/** The texts and the numbers of a JSON text. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Return the value of a JSON text. Numbers that would change become `ExactNumber`.
 *
 * @throws {SyntaxError} It is not JSON.
 */
export function readJson(text: string): ReturnType<typeof JSON.parse> {
  const plain = JSON.parse(text);
  let isExact = true;
  const marked = text.replace(TOKEN, (token) => {
    if (token[0] === '"' || String(Number(token)) === token) return token;
    isExact = false;
    return `${WRITTEN_MARK}${token}"`;
  });
  return isExact ? plain : JSON.parse(marked, revive);
}

function revive(_: string, value: unknown): unknown {
  const isMarked = typeof value === "string" && value.startsWith(MARK);
  return isMarked ? new ExactNumber(value.slice(MARK.length)) : value;
}

/** Return a value as JSON text, its numbers as `readJson` found them. */
export function writeJson(
  value: unknown,
  space?: number,
  replacer?: (key: string, value: unknown) => unknown,
): string {
  const text = JSON.stringify(value, replacer, space);
  if (!text?.includes(WRITTEN_MARK)) return text;
  return text
    .split(WRITTEN_MARK)
    .map((part, index) => (index === 0 ? part : part.replace('"', "")))
    .join("");
}

/** Return a value as a number to calculate with, null where it is none. */
export function numberOf(value: unknown): number | null {
  return typeof value === "number" || value instanceof ExactNumber ? Number(value) : null;
}

/** Return the number that a person wrote, undefined where it is none; JSON keeps its digits. */
export function readNumber(text: string): JsonNumber | undefined {
  try {
    return numberOf(readJson(text)) === null ? undefined : readJson(text);
  } catch {
    const number = text.trim() === "" ? Number.NaN : Number(text); // such as ".5"
    return Number.isFinite(number) ? number : undefined;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  const isNothing = value === null || Array.isArray(value) || value instanceof ExactNumber;
  return typeof value === "object" && !isNothing;
}
