/** The beginning of JSON, as far as it can be told from a link of Markdown. */
const JSON_START = /^\s*[{[]\s*(?:["{[\]}]|-?\d|(?:true|false|null)\b)/;
const CODE = /```\w*([\s\S]*?)(?:```|$)|`([^`\n]+)`/g;
/** What stands for code while the signs are taken out. */
const PLACE = /\uE000(\d+)\uE001/g;

/** Returns a text as one line. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

/** Returns a text as one line, without the signs of Markdown; JSON and code stay as they are. */
export function plainLine(text: string): string {
  if (JSON_START.test(text)) return oneLine(text);
  const codes: string[] = [];
  const markdown = text
    .replaceAll(PLACE, "")
    .replaceAll(CODE, (_, block?: string, span?: string) => {
      return `\uE000${codes.push(block ?? span ?? "") - 1}\uE001`;
    });
  return oneLine(
    withoutSigns(markdown).replaceAll(PLACE, (_, index: string) => codes[Number(index)] ?? ""),
  );
}

function withoutSigns(markdown: string): string {
  return markdown
    .replaceAll(/^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+/gm, "")
    .replaceAll(/(?<=^|[\s("'[])(\*\*|__)(?=\S)(.+?)(?<=\S)(?:\1(?![\w*_])|$)/gm, "$2")
    .replaceAll(/(^|[\s(])[*_](?=\S)([^*_\n]+)(?<=\S)[*_](?=[\s).,;:!?]|$)/gm, "$1$2");
}
