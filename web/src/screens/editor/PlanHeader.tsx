import { useState } from "react";
import { RunOptionsChip } from "@/screens/goal/RunOptionsChip";
import { Button, ButtonLink } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { Switch } from "@/ui/Switch";
import styles from "./GraphEditor.module.css";
import type { useRunPlan } from "./useRunPlan";

type PlanActionsProps = {
  /** Why it cannot run, if so. */
  blocked: string | undefined;
  run: ReturnType<typeof useRunPlan>;
  /** The flow that the plan is; null without a name. */
  flow: { id: string; name: string } | null;
  onSaveAsFlow: () => void;
  onExport: () => void;
  onCopyAsMermaid: () => void;
  onImport: () => void;
};

/** What is done with a plan in its editor; last the button that runs it. */
export function PlanActions({ blocked, run, ...props }: PlanActionsProps) {
  return (
    <>
      {props.flow ? (
        <ButtonLink to={`/flows/${props.flow.id}`}>Flow {props.flow.name}</ButtonLink>
      ) : (
        <Button onClick={props.onSaveAsFlow}>Save as flow</Button>
      )}
      <Menu
        trigger={<IconButton icon="more" label="More" small />}
        items={[
          { label: "Export as a JSON file", icon: "download", onSelect: props.onExport },
          { label: "Copy as Mermaid", icon: "copy", onSelect: props.onCopyAsMermaid },
          { label: "Import a file", icon: "braces", onSelect: props.onImport },
        ]}
      />
      <RunOptionsChip options={run.options} onChange={run.setOptions} />
      <Switch label="Approve first" checked={run.needsApproval} onChange={run.setNeedsApproval} />
      <Button
        kind="primary"
        keys="Ctrl ↵"
        onClick={run.start}
        disabledReason={blocked ?? (run.isStarting ? "Starting …" : undefined)}
      >
        Run
      </Button>
    </>
  );
}

type PlanTitleProps = { title: string; onTitle: (title: string) => void };

/** The title of a plan, which can be changed there. */
export function PlanTitle({ title, onTitle }: PlanTitleProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const finish = () => {
    if (draft?.trim()) onTitle(draft.trim());
    setDraft(null);
  };
  if (draft !== null) {
    return (
      <form
        className={styles.rename}
        onSubmit={(event) => {
          event.preventDefault();
          finish();
        }}
      >
        <TextField
          label="Title of the plan"
          hiddenLabel
          autoFocus
          maxLength={200}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onBlur={finish}
        />
      </form>
    );
  }
  return (
    <div className={styles.title}>
      <h1 title={title}>{title || "A plan"}</h1>
      <IconButton icon="edit" label="Rename the plan" small onClick={() => setDraft(title)} />
    </div>
  );
}
