import { NO_TEXT, type StreamedText } from "@/stream/runState";

/** Characters of a streamed text that are kept at least; the beginning is let go. */
const KEPT_TEXT = 64_000;

/**
 * Return a text with a piece at its offset, in place of everything from there on. A piece that is
 * there already changes nothing; one that begins beyond the end is dropped.
 */
export function putText(text: StreamedText, offset: number, piece: string): StreamedText {
  if (offset === text.length)
    return clip(text.tail + piece, text.offset, text.length + size(piece));
  if (offset > text.length) return text;
  if (offset < text.offset) {
    const end = offset + size(piece);
    return end <= text.length ? text : clip(piece, offset, end);
  }
  const at = indexOf(text, offset);
  if (text.tail.startsWith(piece, at)) return text;
  return clip(text.tail.slice(0, at) + piece, text.offset, offset + size(piece));
}

/** Return a whole text. */
export function wholeText(text: string): StreamedText {
  return text === "" ? NO_TEXT : clip(text, 0, size(text));
}

/** Drop the beginning of a text that is much longer than the limit. */
function clip(tail: string, offset: number, length: number): StreamedText {
  if (tail.length <= 2 * KEPT_TEXT) return { tail, offset, length };
  let cut = tail.length - KEPT_TEXT;
  if (isLowSurrogate(tail.charCodeAt(cut))) cut += 1;
  const kept = tail.slice(cut);
  return { tail: kept, offset: length - size(kept), length };
}

/** Return the index in `tail` of a character of the whole text. */
function indexOf(text: StreamedText, offset: number): number {
  const characters = offset - text.offset;
  if (text.tail.length === text.length - text.offset) return characters;
  let index = 0;
  for (let count = 0; count < characters; count++) {
    index += (text.tail.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  }
  return index;
}

/** Count the characters of a text as the service does: code points. */
function size(text: string): number {
  let count = text.length;
  for (let index = 1; index < text.length; index++) {
    if (isLowSurrogate(text.charCodeAt(index)) && isHighSurrogate(text.charCodeAt(index - 1))) {
      count -= 1;
    }
  }
  return count;
}

function isLowSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00;
}

function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}
