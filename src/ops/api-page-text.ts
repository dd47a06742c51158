/** The page: it loads the viewer, which reads the document. */
export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Portcullis API</title>
<link rel="icon" href="/docs/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header><img src="/docs/favicon.svg" alt="" width="28" height="28"><strong>Portcullis API</strong><nav><a href="/openapi.json">openapi.json</a><a href="/metrics">metrics</a><a href="/pool">pool</a></nav></header>
<main id="api"><noscript>The viewer needs JavaScript. The document itself: <a href="/openapi.json">openapi.json</a></noscript></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** To read alone: requests from here would go to the ops listener, which does not answer them. */
export const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  filter: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: false,
  supportedSubmitMethods: [],
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
});
`;

export const STYLE = `:root { --ink: #1d2733; --line: #dfe5ec; --paper: #f7f9fb; }
body { margin: 0; background: var(--paper); color: var(--ink); }
header { position: sticky; top: 0; z-index: 10; display: flex; align-items: center; gap: 0.7rem; padding: 0.7rem 1.6rem; background: var(--ink); color: #fff; font: 1rem/1.4 system-ui, sans-serif; }
header nav { margin-left: auto; display: flex; gap: 1.4rem; }
header a { color: #c5d3e2; text-decoration: none; }
header a:hover { color: #fff; text-decoration: underline; }
noscript { display: block; padding: 2rem 1.6rem; font: 1rem/1.5 system-ui, sans-serif; }
.swagger-ui .wrapper { max-width: 1180px; }
.swagger-ui .info { margin: 1.6rem 0; }
.swagger-ui .info .title { font-family: system-ui, sans-serif; }
.swagger-ui .renderedMarkdown code { padding: 1px 4px; background: #e8edf3; color: #34506b; }
.swagger-ui .scheme-container, .swagger-ui .response-col_links { display: none; }
.swagger-ui .opblock-tag { border-bottom-color: var(--line); font-family: system-ui, sans-serif; }
.swagger-ui .opblock { box-shadow: none; scroll-margin-top: 4rem; }
.swagger-ui .opblock .opblock-summary-description { text-align: left; }
.swagger-ui .filter .operation-filter-input { border: 1px solid var(--line); }
`;

/** A gate that is let down. */
export const FAVICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="#2f6f9f"/><path d="M6 27V15a10 10 0 0 1 20 0v12" fill="none" stroke="#fff" stroke-width="2.4"/><path d="M11 9v17M16 6v20M21 9v17M7 16h18M7 21h18" stroke="#fff" stroke-width="1.8"/><path d="M9.5 26h3L11 29zM14.500 26h3L16 29zM19.500 26h3L21 29z" fill="#fff"/></svg>
`;
