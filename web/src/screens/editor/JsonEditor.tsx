import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { linter } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { readJson } from "@/json";
import { styleNonce } from "@/ui/styleNonce";

type JsonEditorProps = { label: string; text: string; onText: (text: string) => void };

const THEME = EditorView.theme({
  "&": { height: "100%", fontSize: "12px", backgroundColor: "transparent" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "18px" },
  ".cm-gutters": {
    paddingLeft: "8px",
    backgroundColor: "transparent",
    border: "0",
    color: "var(--text-3)",
  },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
});

/** Replaces the text; what is not JSON yet stays, to be finished. */
function show(editor: EditorView, text: string): void {
  const old = editor.state.doc.toString();
  if (old === text || !isJson(old)) return;
  editor.dispatch({ changes: { from: 0, to: old.length, insert: text } });
}

function isJson(text: string): boolean {
  try {
    readJson(text);
    return true;
  } catch {
    return false;
  }
}

/** A JSON editor with line numbers; the code of CodeMirror is loaded with it. */
export function JsonEditor({ label, text, onText }: JsonEditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ text, onText });
  latest.current = { text, onText };
  useEffect(() => {
    if (!parent.current) return;
    const editor = new EditorView({
      parent: parent.current,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [
          EditorView.cspNonce.of(styleNonce),
          json(),
          linter(jsonParseLinter()),
          lineNumbers(),
          history(),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          THEME,
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            latest.current.onText(update.state.doc.toString());
          }),
          // What changed elsewhere while one typed here.
          EditorView.domEventHandlers({ blur: (_, editor) => show(editor, latest.current.text) }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [label]);
  useEffect(() => {
    const editor = view.current;
    if (editor && !editor.hasFocus) show(editor, text);
  }, [text]);
  return <div ref={parent} />;
}
