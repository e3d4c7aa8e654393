/** Code is left as it is: fences, and spans of one line. */
const CODE =
  /(^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\2[`~]*[ \t]*$|$(?![\s\S]))|(`+)[^\n]*?[^`\n]\3(?!`))/gm;
/* A block has lines of its own: elsewhere `\[1\]` is a bracket that is no link. */
const BRACKETS = /^[ \t]*\\\[((?:(?!\n\s*\n)[\s\S])+?)\\\][ \t]*$|\\\(([^\n]+?)\\\)/gm;
/* The rule of Pandoc, so that prices stay prices: no space inside, and no digit after the end. */
const DOLLARS = /(?<![\\$\w])\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s\\$])\$(?![\d$])/g;

/** Returns Markdown in which mathematics stands between `$$`, whichever marks its author used: `\(x\)`, `\[x\]`, `$x$`. */
export function withMathMarks(text: string): string {
  if (!text.includes("$") && !text.includes("\\")) return text;
  let rest = 0;
  let marked = "";
  for (const code of text.matchAll(CODE)) {
    marked += markMath(text.slice(rest, code.index)) + code[0];
    rest = code.index + code[0].length;
  }
  return marked + markMath(text.slice(rest));
}

function markMath(text: string): string {
  return text
    .replace(BRACKETS, (_, block: string | undefined, inline: string) =>
      block === undefined ? `$$${inline.trim()}$$` : `$$\n${block.trim()}\n$$`,
    )
    .replace(DOLLARS, (_, inline: string) => `$$${inline}$$`);
}
