import type { ComponentType } from "react";
import { RequestCount } from "@/app/RequestCount";
import type { IconName } from "@/ui/icons";

interface NavigationItem {
  to: string;
  label: string;
  icon: IconName;
  /** The key after G. */
  key: string;
  /** Other addresses that belong to it. */
  holds?: readonly string[];
  /** A number beside the label. */
  Badge?: ComponentType;
}

/** The main navigation, in the order of the bar; each item has a route in `routes.tsx`. */
export const NAVIGATION: readonly NavigationItem[] = [
  { to: "/", label: "New", icon: "add", key: "n" },
  { to: "/runs", label: "Runs", icon: "history", key: "r", holds: ["/spend"] },
  { to: "/flows", label: "Flows", icon: "flow", key: "f", holds: ["/plans", "/triggers"] },
  { to: "/approvals", label: "Approvals", icon: "approval", key: "a", Badge: RequestCount },
  { to: "/chat", label: "Chat", icon: "chat", key: "c" },
];
