import { useState } from "react";
import { RunOptionsChip } from "@/screens/goal/RunOptionsChip";
import { Button, ButtonLink } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { Segmented } from "@/ui/Segmented";
import { Switch } from "@/ui/Switch";
import { Tag } from "@/ui/Tag";
import styles from "./EditorHeader.module.css";
import type { useRunPlan } from "./useRunPlan";

export type EditorView = "canvas" | "table" | "json";

type EditorHeaderProps = {
  title: string;
  onTitle: (title: string) => void;
  view: EditorView;
  onView: (view: EditorView) => void;
  /** Why it cannot run, if so. */
  blocked: string | undefined;
  run: ReturnType<typeof useRunPlan>;
  /** What the plan is as a flow; null without a name. */
  flow: { id: string; name: string } | null;
  onSaveAsFlow: () => void;
  onExport: () => void;
  onImport: () => void;
};

export const EDITOR_VIEWS: readonly { value: EditorView; label: string }[] = [
  { value: "canvas", label: "Canvas" },
  { value: "table", label: "Table" },
  { value: "json", label: "JSON" },
];

/** The title of the plan, how it is shown, and the button that runs it. */
export function EditorHeader(props: EditorHeaderProps) {
  const { blocked, run } = props;
  return (
    <header className={styles.header}>
      {blocked && <Tag>Draft</Tag>}
      <Title title={props.title} onTitle={props.onTitle} />
      <div className={styles.actions}>
        <Segmented
          label="Show the plan as"
          value={props.view}
          options={EDITOR_VIEWS}
          onChange={props.onView}
        />
        {props.flow ? (
          <ButtonLink to={`/flows/${props.flow.id}`}>Flow {props.flow.name}</ButtonLink>
        ) : (
          <Button onClick={props.onSaveAsFlow}>Save as flow</Button>
        )}
        <Menu
          trigger={<IconButton icon="more" label="More" small />}
          items={[
            { label: "Export as a JSON file", icon: "download", onSelect: props.onExport },
            { label: "Import a JSON file", icon: "braces", onSelect: props.onImport },
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
      </div>
    </header>
  );
}

function Title({ title, onTitle }: Pick<EditorHeaderProps, "title" | "onTitle">) {
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
