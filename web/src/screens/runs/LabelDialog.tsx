import { type FormEvent, useId, useState } from "react";
import { errorText } from "@/api/errorText";
import { type Labels, useLabel } from "@/api/mutations";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextArea, TextField } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { Checkbox } from "@/ui/Switch";

interface LabelledRun {
  execution_id: string;
  title: string;
  name: string | null;
  tags: readonly string[];
  note: string;
  starred: boolean;
}

interface LabelDialogProps {
  /** The run that is named; null while none is. */
  run: LabelledRun | null;
  onClose: () => void;
}

/** Asks what a run is called: its name, tags and a note. */
export function LabelDialog({ run, onClose }: LabelDialogProps) {
  const label = useLabel();
  const form = useId();
  const close = () => {
    label.reset();
    onClose();
  };
  const save = (labels: Labels) =>
    run && label.mutate({ executionId: run.execution_id, labels }, { onSuccess: close });
  return (
    <Dialog
      open={run !== null}
      onClose={close}
      title="Name, tags and note"
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="primary"
            type="submit"
            form={form}
            disabledReason={label.isPending ? "Saving" : undefined}
          >
            Save
          </Button>
        </>
      }
    >
      {run && <LabelForm key={run.execution_id} id={form} run={run} onSave={save} />}
      {label.error && (
        <Note kind="error" alert>
          {errorText(label.error)}
        </Note>
      )}
    </Dialog>
  );
}

function LabelForm(props: { id: string; run: LabelledRun; onSave: (labels: Labels) => void }) {
  const { run } = props;
  const [name, setName] = useState(run.name ?? "");
  const [tags, setTags] = useState(run.tags.join(", "));
  const [note, setNote] = useState(run.note);
  const [starred, setStarred] = useState(run.starred);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const words = tags.split(",").map((tag) => tag.trim());
    props.onSave({ name: name.trim() || null, tags: words.filter(Boolean), note, starred });
  };
  return (
    <form id={props.id} onSubmit={submit}>
      <TextField
        label="Name"
        hint="Without a name the run is called by its title."
        placeholder={run.title}
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <TextField
        label="Tags"
        hint="Separated by commas."
        autoComplete="off"
        value={tags}
        onChange={(event) => setTags(event.target.value)}
      />
      <TextArea
        label="Note"
        maxLength={2000}
        value={note}
        onChange={(event) => setNote(event.target.value)}
      />
      <Checkbox label="Starred" checked={starred} onChange={() => setStarred(!starred)} />
    </form>
  );
}
