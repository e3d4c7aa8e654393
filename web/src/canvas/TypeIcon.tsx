import { Icon, type IconName } from "@/ui/icons";
import styles from "./TypeIcon.module.css";

const ICON_OF_TYPE: Readonly<Record<string, IconName>> = {
  agent: "model",
  llm: "model",
  chat: "chat",
  chat_start: "chat",
  planner: "brain",
  if: "branch",
  conditional: "branch",
  switch: "branch",
  merge: "branch",
  approval: "approval",
  send_message: "person",
  user_input: "person",
  loop: "loop",
  while: "loop",
  inner: "flow",
  start: "play",
  end: "stop",
  void: "stop",
  wait: "clock",
  text: "text",
  number: "text",
  boolean: "text",
  json: "braces",
  parser: "braces",
  transform: "braces",
  model: "chip",
  client: "chip",
};

/** The icon of a node type; types of other packages have that of a tool. */
export function TypeIcon({ type }: { type: string }) {
  return (
    <span className={styles.tile}>
      <Icon name={ICON_OF_TYPE[type] ?? "tool"} small />
    </span>
  );
}
