import type { RouteObject } from "react-router";
import { Layout } from "@/app/Layout";
import { NotFound } from "@/app/NotFound";
import { RouteError } from "@/app/RouteError";

/** Every page; its code is loaded when it is opened. */
export const ROUTES: RouteObject[] = [
  {
    path: "/",
    Component: Layout,
    ErrorBoundary: RouteError,
    HydrateFallback: () => null,
    children: [
      {
        ErrorBoundary: RouteError,
        children: [
          {
            index: true,
            lazy: async () => ({
              Component: (await import("@/screens/goal/GoalScreen")).GoalScreen,
            }),
          },
          {
            path: "plans/:planId",
            lazy: async () => ({
              Component: (await import("@/screens/editor/EditorScreen")).EditorScreen,
            }),
          },
          {
            path: "runs",
            lazy: async () => ({
              Component: (await import("@/screens/runs/RunsScreen")).RunsScreen,
            }),
          },
          {
            path: "runs/compare",
            lazy: async () => ({
              Component: (await import("@/screens/compare/CompareScreen")).CompareScreen,
            }),
          },
          {
            path: "runs/:executionId",
            lazy: async () => ({
              Component: (await import("@/screens/run/RunScreen")).RunScreen,
            }),
          },
          {
            path: "runs/:executionId/change",
            lazy: async () => ({
              Component: (await import("@/screens/editor/ChangeRunScreen")).ChangeRunScreen,
            }),
          },
          {
            path: "spend",
            lazy: async () => ({
              Component: (await import("@/screens/spend/SpendScreen")).SpendScreen,
            }),
          },
          {
            path: "flows",
            lazy: async () => ({
              Component: (await import("@/screens/flows/PlansScreen")).PlansScreen,
            }),
          },
          {
            path: "flows/:flowId",
            lazy: async () => ({
              Component: (await import("@/screens/flows/FlowScreen")).FlowScreen,
            }),
          },
          {
            path: "flows/:planId/edit",
            lazy: async () => ({
              Component: (await import("@/screens/editor/EditorScreen")).EditorScreen,
            }),
          },
          {
            path: "triggers",
            lazy: async () => ({
              Component: (await import("@/screens/triggers/TriggersScreen")).TriggersScreen,
            }),
          },
          {
            path: "approvals",
            lazy: async () => ({
              Component: (await import("@/screens/approvals/ApprovalsScreen")).ApprovalsScreen,
            }),
          },
          {
            path: "chat/:chatId?",
            lazy: async () => ({
              Component: (await import("@/screens/chats/ChatScreen")).ChatScreen,
            }),
          },
          {
            path: "settings",
            lazy: async () => ({
              Component: (await import("@/screens/settings/SettingsScreen")).SettingsScreen,
            }),
          },
          { path: "*", Component: NotFound },
        ],
      },
    ],
  },
];
