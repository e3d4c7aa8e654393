/** Hands a JSON text to the browser as a file that is named after a title. */
export function saveJsonFile(content: string, title: string): void {
  saveFile(content, `${nameOfFile(title)}.json`, "application/json");
}

/** Returns the name of a file after a title, without the end that says its type. */
export function nameOfFile(title: string): string {
  return title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-|-$/g, "") || "planwave";
}

/** Hands a text to the browser as a file. */
export function saveFile(content: string, name: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
