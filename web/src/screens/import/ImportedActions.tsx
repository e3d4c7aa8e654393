import { useState } from "react";
import { writeJson } from "@/json";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { Checkbox } from "@/ui/Switch";
import { saveFile, saveJsonFile } from "@/ui/saveFile";
import styles from "./ImportedActions.module.css";
import { hasChanged, obstacle } from "./importReport";
import type { Import, Imported } from "./useImport";

type ImportedActionsProps = { imported: Imported; task: Import };

/** What is done with a graph that was imported. */
export function ImportedActions({ imported, task }: ImportedActionsProps) {
  const { answer, graph } = imported;
  const [isNaming, setNaming] = useState(false);
  if (isNaming) {
    return <SaveForm {...{ imported, task }} name={graph.name} onBack={() => setNaming(false)} />;
  }
  return (
    <>
      {task.error && <Failure error={task.error} />}
      <Button kind="quiet" onClick={task.restart}>
        Another file
      </Button>
      <Button
        icon="download"
        onClick={() => saveJsonFile(writeJson(answer.report, 2), `${graph.name} import report`)}
      >
        Download the report
      </Button>
      {answer.code && (
        <Button icon="download" onClick={() => saveModule(answer.code, graph.name)}>
          Download the Python module
        </Button>
      )}
      <Button onClick={() => setNaming(true)}>Save as flow …</Button>
      <Button kind="primary" onClick={() => void task.open(imported)} aria-busy={task.isBusy}>
        Open in the editor
      </Button>
    </>
  );
}

type SaveFormProps = ImportedActionsProps & { name: string; onBack: () => void };

/** The name of the flow, and that what changed was read. */
function SaveForm({ imported, task, onBack, ...props }: SaveFormProps) {
  const [name, setName] = useState(props.name);
  const [isRead, setRead] = useState(!hasChanged(imported.answer.report));
  const errors = obstacle(imported.answer);
  const reason = whyNot(name, isRead);
  return (
    <form
      className={styles.form}
      aria-label="Save as flow"
      onSubmit={(event) => {
        event.preventDefault();
        if (!reason) void task.save(imported, name.trim());
      }}
    >
      {task.error && <Failure error={task.error} />}
      <TextField
        label="Name of the flow"
        autoFocus
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      {hasChanged(imported.answer.report) && (
        <Checkbox label="I have read what changed" checked={isRead} onChange={setRead} />
      )}
      {errors && (
        <Note kind="warning">It has {errors}: it is saved as a draft, which nothing starts.</Note>
      )}
      <div className={styles.buttons}>
        <Button kind="quiet" onClick={onBack}>
          Back
        </Button>
        <Button type="submit" kind="primary" aria-busy={task.isBusy} disabledReason={reason}>
          Save the flow
        </Button>
      </div>
    </form>
  );
}

function Failure({ error }: { error: Error }) {
  return (
    <div className={styles.failure}>
      <ErrorNote error={error} />
    </div>
  );
}

function whyNot(name: string, isRead: boolean): string | undefined {
  if (!isRead) return "Confirm what changed";
  return name.trim() === "" ? "It needs a name" : undefined;
}

function saveModule(code: string, title: string): void {
  const name = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^_|_$/g, "");
  saveFile(code, `${name || "imported"}_steps.py`, "text/x-python");
}
