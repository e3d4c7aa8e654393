import { createRoot } from "react-dom/client";
import "@/ui/styleNonce";
import "@/ui/tokens.css";
import "@/ui/base.css";
import { App } from "@/app/App";
import { followTheme } from "@/ui/preferences";
import { listenToKeys } from "@/ui/shortcuts";

followTheme();
listenToKeys();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
