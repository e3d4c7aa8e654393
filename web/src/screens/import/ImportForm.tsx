import { type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from "react";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { SelectField, TextArea } from "@/ui/Field";
import { isTyping } from "@/ui/shortcuts";
import styles from "./ImportForm.module.css";
import { nounOf } from "./importReport";
import type { Import } from "./useImport";

/** What is to be imported: a file, or a text that is pasted. */
export function ImportForm({ task }: { task: Import }) {
  const { source, change } = task;
  const field = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const isFirst = useRef(source.text === "");
  // At once, without another click; whoever cancels it may paste or drop something in the dialog.
  useEffect(() => {
    if (isFirst.current) field.current?.click();
  }, []);
  const take = (files: FileList | null | undefined) => {
    const [file] = files ?? [];
    if (file) void task.readFile(file);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files);
  };
  const paste = (event: ClipboardEvent) => {
    const { files } = event.clipboardData;
    const text = event.clipboardData.getData("text/plain");
    if (files.length === 0 && (isTyping(event.target) || text === "")) return;
    event.preventDefault();
    // Else the editor behind the dialog would paste it, too.
    event.nativeEvent.stopPropagation();
    if (files.length > 0) take(files);
    else change({ text, fileName: "" });
  };
  return (
    <div className={styles.form} onPaste={paste}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: its button does the same by keyboard */}
      <div
        className={styles.drop}
        data-over={isOver}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <input
          ref={field}
          type="file"
          aria-label="File to import"
          hidden
          onChange={(event) => {
            take(event.target.files);
            event.target.value = "";
          }}
        />
        <Button icon="braces" onClick={() => field.current?.click()}>
          {source.fileName ? "Choose another file" : "Choose a file"}
        </Button>
        <p>{source.fileName || "or drop it here"}</p>
      </div>
      <TextArea
        label="Paste a graph, a workflow of another program or a Mermaid flowchart"
        className={styles.text}
        rows={8}
        spellCheck={false}
        value={source.fileName ? "" : source.text}
        onChange={(event) => change({ text: event.target.value, fileName: "" })}
      />
      {task.kinds.length > 0 && (
        <SelectField
          label="Read it as"
          value={task.kind ?? ""}
          onChange={(event) => task.setKind(event.target.value || null)}
        >
          <option value="">what its shape tells</option>
          {task.kinds.map((each) => (
            <option key={each} value={each}>
              {nounOf(each)}
            </option>
          ))}
        </SelectField>
      )}
      {task.error && <ErrorNote error={task.error} />}
    </div>
  );
}
