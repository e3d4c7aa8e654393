/** Returns a page of its own with what is drawn in an element: it loads nothing, and runs nothing. */
export function htmlPage(title: string, drawn: Element): string {
  const body = drawn.cloneNode(true) as Element;
  for (const control of body.querySelectorAll("button, details")) control.remove();
  for (const each of [body, ...body.querySelectorAll("*")]) {
    for (const name of ["class", "tabindex", "aria-label"]) each.removeAttribute(name);
  }
  return `<!doctype html>
<html lang="">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
${body.outerHTML}
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

const STYLE = `
body { max-width: 960px; margin: 40px auto; padding: 0 20px; color: #17212a; background: #fff;
  font: 16px/1.6 Inter, system-ui, "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h2, h3, h4, h5, h6 { line-height: 1.3; margin: 1.6em 0 0.5em; }
h3 { font-size: 1.4em; } h4 { font-size: 1.2em; } h5 { font-size: 1em; } h6 { font-size: 0.9em; }
section { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9em; }
td, th { padding: 5px 16px 5px 0; border-bottom: 1px solid #c8d0d8; text-align: start; vertical-align: top;
  overflow-wrap: normal; }
pre { padding: 12px; overflow: auto; background: #eef1f4; border-radius: 6px; font-size: 0.85em; line-height: 1.5; }
code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
blockquote { margin: 1em 0; padding-inline-start: 12px; border-inline-start: 2px solid #c8d0d8; color: #47535f; }
figure { margin: 1em 0; } img { max-width: 100%; height: auto; }
@media print { body { margin: 0; max-width: none; } pre { white-space: pre-wrap; } }
`;
