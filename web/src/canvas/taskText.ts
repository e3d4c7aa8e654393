/** A literal in a template: what a model writes in braces is stored so, to stay as it is. */
const LITERAL =
  /\{%-?\s*raw\s*-?%\}([\s\S]*?)\{%-?\s*endraw\s*-?%\}|\{\{\s*"(\{\{|\{%|\{#|\}\}|%\}|#\})"\s*\}\}/g;

/** Returns a task or a goal as people read it: without the marks of literals around braces. */
export function taskText(text: string): string {
  return text.replaceAll(LITERAL, (_, raw?: string, braces?: string) => raw ?? braces ?? "");
}
