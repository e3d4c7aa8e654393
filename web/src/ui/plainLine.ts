/** Returns a text as one line, without the signs of Markdown. */
export function plainLine(markdown: string): string {
  return markdown
    .replaceAll(/^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+/gm, "")
    .replaceAll(/\*\*|__|`+/g, "")
    .replaceAll(/(^|[\s(])[*_](?=\S)([^*_\n]+)(?<=\S)[*_](?=[\s).,;:!?]|$)/gm, "$1$2")
    .replaceAll(/\s+/g, " ")
    .trim();
}
