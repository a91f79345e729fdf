import '../style/tokens.css';
import '../style/base.css';
import '../style/shell.css';
import '../style/components.css';
import '../style/timeline.css';
import '../style/charts.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { applyTheme } from './theme.ts';

applyTheme();
const root = document.createElement('div');
document.body.append(root);
render(<App />, root);
