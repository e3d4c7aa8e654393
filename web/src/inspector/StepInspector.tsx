import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useExplain } from "@/api/queries";
import { queryKeys } from "@/api/queryKeys";
import { TypeIcon } from "@/canvas/TypeIcon";
import { withNames } from "@/stream/names";
import { useRun } from "@/stream/RunProvider";
import type { NodeState } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Popover } from "@/ui/Popover";
import { Status } from "@/ui/Status";
import { TabPanel, Tabs } from "@/ui/Tabs";
import { InputTab } from "./InputTab";
import { JsonTab } from "./JsonTab";
import { OutputTab } from "./OutputTab";
import { PromptTab } from "./PromptTab";
import styles from "./StepInspector.module.css";
import { TimingTab } from "./TimingTab";

export type StepTab = "input" | "prompt" | "output" | "timing" | "json";

type StepInspectorProps = {
  executionId: string;
  node: NodeState;
  tab: StepTab;
  onTab: (tab: StepTab) => void;
  /** What the step asks, above its tabs. */
  request?: ReactNode;
  duration: string;
  onSelect: (path: string) => void;
  onMove: (by: 1 | -1) => void;
  onClose: () => void;
  onRunFromHere: () => void;
  onFork: () => void;
  /** Why the run cannot be forked at this step. */
  forkObstacle: string | undefined;
};

const TABS: readonly { value: StepTab; label: string }[] = [
  { value: "input", label: "Input" },
  { value: "prompt", label: "Prompt" },
  { value: "output", label: "Output" },
  { value: "timing", label: "Timing" },
  { value: "json", label: "JSON" },
];

/** One step of a run: its inputs, its prompt, its outputs and its timing. */
export function StepInspector(props: StepInspectorProps) {
  const { node, tab, onTab, executionId, onSelect } = props;
  const part = { executionId, node };
  useFreshParts(executionId, node);
  return (
    <aside className={styles.inspector} aria-label={`Step ${node.name}`} tabIndex={-1}>
      <Head {...props} />
      {props.request && <div className={styles.request}>{props.request}</div>}
      <Tabs
        label="Parts of the step"
        value={tab}
        tabs={TABS}
        onChange={onTab}
        className={styles.tabs}
      >
        <TabPanel value="input" className={styles.panel}>
          <InputTab {...part} onSelect={onSelect} />
        </TabPanel>
        <TabPanel value="prompt" className={styles.panel}>
          <PromptTab {...part} />
        </TabPanel>
        <TabPanel value="output" className={styles.panel}>
          <OutputTab {...part} onSelect={onSelect} />
        </TabPanel>
        <TabPanel value="timing" className={styles.panel}>
          <TimingTab {...part} />
        </TabPanel>
        <TabPanel value="json" className={styles.panel}>
          <JsonTab {...part} />
        </TabPanel>
      </Tabs>
      <Foot {...props} />
    </aside>
  );
}

/** Reloads the data of a step when the state of the step has changed. */
function useFreshParts(executionId: string, { path, status, attempt }: NodeState) {
  const client = useQueryClient();
  const loaded = useRef({ path, status, attempt });
  useEffect(() => {
    const before = loaded.current;
    loaded.current = { path, status, attempt };
    if (before.path !== path || (before.status === status && before.attempt === attempt)) return;
    void client.invalidateQueries({ queryKey: queryKeys.node(executionId, path) });
    void client.invalidateQueries({ queryKey: queryKeys.explain(executionId, path) });
  }, [client, executionId, path, status, attempt]);
}

function Head({ node, duration, onMove, onClose }: StepInspectorProps) {
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <TypeIcon type={node.type ?? ""} />
        <h2 title={node.path}>{node.name}</h2>
        <IconButton icon="left" label="Previous step" keys="K" small onClick={() => onMove(-1)} />
        <IconButton icon="right" label="Next step" keys="J" small onClick={() => onMove(1)} />
        <IconButton icon="close" label="Close" keys="Esc" small onClick={onClose} />
      </div>
      <p className={styles.facts}>
        <Status status={node.status} />
        {node.type && <span>{node.type}</span>}
        {node.model && (
          <span className={styles.model} title={node.model}>
            {node.model}
            {node.provider === "local" && ", embedded"}
          </span>
        )}
        {duration && <span>{duration}</span>}
      </p>
    </header>
  );
}

function Foot({ executionId, node, onRunFromHere, onFork, forkObstacle }: StepInspectorProps) {
  const reasonId = useId();
  const disabled = forkObstacle && { "aria-disabled": true, "aria-describedby": reasonId };
  return (
    <footer className={styles.foot}>
      <Button small icon="retry" onClick={forkObstacle ? undefined : onRunFromHere} {...disabled}>
        Run from here
      </Button>
      <Button small icon="fork" onClick={forkObstacle ? undefined : onFork} {...disabled}>
        Fork with a change
      </Button>
      <span className={styles.space} />
      <Why executionId={executionId} node={node} />
      {forkObstacle && (
        <p id={reasonId} className={styles.obstacle}>
          {forkObstacle}
        </p>
      )}
    </footer>
  );
}

/** Why the step ran, did not run, or waits: the API's own sentences. */
function Why({ executionId, node }: { executionId: string; node: NodeState }) {
  const [isOpen, setOpen] = useState(false);
  const explanation = useExplain(executionId, node.path, isOpen);
  const nodes = useRun((run) => run.nodes);
  const reason = explanation.data && withNames(nodes, explanation.data.reason);
  return (
    <Popover
      open={isOpen}
      onOpenChange={setOpen}
      label={`Why ${node.name} ${node.status}`}
      trigger={
        <Button small kind="quiet">
          Why?
        </Button>
      }
    >
      <p>{reason ?? explanation.error?.message ?? "Looking it up …"}</p>
    </Popover>
  );
}
