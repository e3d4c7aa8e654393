import { useState } from "react";
import { useDeleteInputSet, useSaveInputSet } from "@/api/mutations";
import { useInputSets } from "@/api/queries";
import { showError } from "@/api/showError";
import type { InputSetResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { SelectField, TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { Note } from "@/ui/Note";
import styles from "./FlowScreen.module.css";
import type { GivenInputs } from "./flowInputs";

type InputSetsProps = {
  flowId: string;
  /** What the form has now. */
  given: GivenInputs;
  onChoose: (saved: Readonly<Record<string, unknown>>) => void;
};

/** The saved inputs of a flow: chosen for the form, saved from it, renamed and deleted. */
export function InputSets({ flowId, given, onChoose }: InputSetsProps) {
  const sets = useInputSets(flowId).data?.input_sets ?? [];
  const [name, setName] = useState("");
  const [naming, setNaming] = useState<"save" | "rename" | null>(null);
  const save = useSaveInputSet(flowId);
  const remove = useDeleteInputSet(flowId);
  const chosen = sets.find((each) => each.name === name);
  const choose = (next: string) => {
    setName(next);
    onChoose(sets.find((each) => each.name === next)?.inputs ?? {});
  };
  const empty = Object.keys(given).length === 0 ? "Fill in an input first" : undefined;
  return (
    <div className={styles.sets}>
      <SelectField
        label="Saved inputs"
        value={chosen ? name : ""}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="">{sets.length === 0 ? "None yet" : "None"}</option>
        {sets.map((each) => (
          <option key={each.name} value={each.name}>
            {each.issues.length > 0 ? `${each.name} (does not fit any more)` : each.name}
          </option>
        ))}
      </SelectField>
      <Menu
        trigger={<IconButton icon="more" label="Save or change saved inputs" bordered />}
        items={[
          {
            label: "Save as …",
            icon: "add",
            disabledReason: empty,
            onSelect: () => setNaming("save"),
          },
          ...(chosen
            ? ([
                {
                  label: `Save as “${name}”`,
                  icon: "edit",
                  disabledReason: empty,
                  onSelect: () =>
                    save.mutate({ name, body: { inputs: given } }, { onError: showError }),
                },
                { label: "Rename", icon: "text", onSelect: () => setNaming("rename") },
                "line",
                {
                  label: "Delete",
                  icon: "trash",
                  danger: true,
                  onSelect: () =>
                    remove.mutate(name, { onSuccess: () => setName(""), onError: showError }),
                },
              ] as const)
            : []),
        ]}
      />
      {chosen && chosen.issues.length > 0 && <DoesNotFit set={chosen} />}
      {naming && (
        <NameInputs
          flowId={flowId}
          before={naming === "rename" ? name : null}
          given={given}
          onClose={() => setNaming(null)}
          onNamed={setName}
        />
      )}
    </div>
  );
}

/** Says what of saved inputs the flow does not take any more. */
function DoesNotFit({ set }: { set: InputSetResponse }) {
  return (
    <Note kind="warning">
      “{set.name}” does not fit the flow any more:{" "}
      {set.issues.map(({ message }) => message).join("; ")}.
    </Note>
  );
}

type NameInputsProps = {
  flowId: string;
  /** The name of those that get another one; null where the form is saved. */
  before: string | null;
  given: GivenInputs;
  onClose: () => void;
  onNamed: (name: string) => void;
};

function NameInputs({ flowId, before, given, onClose, onNamed }: NameInputsProps) {
  const [name, setName] = useState(before ?? "");
  const save = useSaveInputSet(flowId);
  const submit = () =>
    save.mutate(
      before === null
        ? { name: name.trim(), body: { inputs: given } }
        : { name: before, body: { name } },
      {
        onSuccess: (saved) => {
          onNamed(saved.name);
          onClose();
        },
      },
    );
  return (
    <Dialog
      open
      onClose={onClose}
      title={before === null ? "Save these inputs" : "Rename the saved inputs"}
      footer={
        <Button
          kind="primary"
          onClick={submit}
          disabledReason={name.trim() === "" ? "Give them a name" : undefined}
        >
          Save
        </Button>
      }
    >
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          event.stopPropagation();
          if (name.trim() !== "") submit();
        }}
      >
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} />
        {save.error && <ErrorNote error={save.error} />}
      </form>
    </Dialog>
  );
}
